#include "core/profile/published_images.h"

#include <algorithm>
#include <iterator>

#include "core/base/text/letters_apart.h"
#include "core/profile/image_release.h"
#include "fmt/format.h"
#include "re2/re2.h"

namespace wavetank::pilot {
namespace {

// istio: the tags of github.com/istio/istio without alpha, beta and rc, read on 2026-08-22: of 1.MINOR the last patch,
// and those before it that have no tag.
struct Minor {
  int last;
  int without = -1;
};
constexpr Minor kMinors[] = {{9}, {17}, {10}, {8}, {10}, {10}, {14},   {8},    {6},     {9}, {6},
                             {8}, {9},  {9},  {6}, {7},  {7},  {8, 7}, {7, 4}, {10, 2}, {8}, {6},
                             {8}, {6},  {6},  {5}, {8},  {9},  {10},   {6},    {3}};
constexpr int kNewest = static_cast<int>(std::size(kMinors)) - 1;
// Releases that still got patches then, and the one before them.
constexpr int kMayGrow = kNewest - 3;

// istio: tools/docker.yaml and release notes: what is built for each release, from and to a minor. Examples have tags
// of their own.
struct Image {
  std::string_view name;
  int since, last;
};
constexpr Image kImages[] = {{"pilot", 0, 1 << 20},    {"proxyv2", 0, 1 << 20}, {"install-cni", 1, 1 << 20},
                             {"istioctl", 3, 1 << 20}, {"operator", 4, 23},     {"ztunnel", 18, 1 << 20}};

constexpr std::string_view kHubs[] = {"docker.io/istio", "gcr.io/istio-release", "registry.istio.io/release"};

// Of "docker.io/istio/pilot:1.18.2": what stands before the last slash, in full, and the name.
struct Parts {
  std::string hub;
  std::string_view name, tag;
};
Parts PartsOf(std::string_view image) {
  Parts out;
  out.tag = TagOf(image);
  image = image.substr(0, image.find('@'));
  const size_t slash = image.rfind('/');
  out.name = image.substr(slash == image.npos ? 0 : slash + 1);
  out.name = out.name.substr(0, out.name.find(':'));
  if (slash == image.npos) return out;
  out.hub = image.substr(0, slash);
  const std::string first = out.hub.substr(0, out.hub.find('/'));
  if (first == "index.docker.io") out.hub = "docker.io" + out.hub.substr(first.size());
  // distribution: reference/normalize.go, splitDockerDomain.
  if (first.find_first_of(".:") == first.npos && first != "localhost") out.hub = "docker.io/" + out.hub;
  return out;
}

bool IsOfficial(std::string_view hub) { return std::find(std::begin(kHubs), std::end(kHubs), hub) != std::end(kHubs); }

bool IsBuiltForReleases(std::string_view name) {
  return std::any_of(std::begin(kImages), std::end(kImages), [&](const Image& i) { return i.name == name; });
}

}  // namespace

std::string NeverPublished(std::string_view image) {
  if (image.find('@') != image.npos) return {};
  const Parts parts = PartsOf(image);
  if (!IsOfficial(parts.hub)) return {};
  static const re2::RE2* const release = new re2::RE2("(v?)(\\d{1,4})\\.(\\d{1,4})\\.(\\d{1,6})(?:-(.*))?");
  std::string v, variant;
  int major = 0, minor = 0, patch = 0;
  if (!re2::RE2::FullMatch(std::string(parts.tag), *release, &v, &major, &minor, &patch, &variant)) return {};
  static const re2::RE2* const early = new re2::RE2("(alpha|beta|rc)\\b.*|snapshot.*");
  if (re2::RE2::FullMatch(variant, *early)) return {};
  const auto known =
      std::find_if(std::begin(kImages), std::end(kImages), [&](const Image& i) { return i.name == parts.name; });
  if (known == std::end(kImages)) {
    for (const Image& each : kImages) {
      if (LettersApart(each.name, parts.name) <= 2)
        return fmt::format("{} has no image {}; one that it has is {}", parts.hub, parts.name, each.name);
    }
    return {};
  }
  if (major > 1 || (major == 1 && minor > kNewest)) return {};  // to come
  if (!v.empty()) return fmt::format("tags of Istio's images begin with no v: it is {}", parts.tag.substr(1));
  if (major == 0) return {};
  const Minor& of = kMinors[minor];
  if (patch > of.last && minor >= kMayGrow) return {};
  if (patch > of.last || patch == of.without) {
    return fmt::format("Istio has no release 1.{}.{}: those of 1.{} end with 1.{}.{}{}", minor, patch, minor, minor,
                       of.last, of.without < 0 ? "" : fmt::format(", without 1.{}.{}", minor, of.without));
  }
  if (minor < known->since || minor > known->last) {
    return fmt::format("Istio 1.{} has no image {}: {}", minor, parts.name,
                       minor < known->since ? fmt::format("it came with 1.{}", known->since)
                                            : fmt::format("it ended with 1.{}", known->last));
  }
  if (!variant.empty() && variant != "distroless" && variant != "debug") {
    return fmt::format(
        "Istio publishes no variant {} of its images: there are 1.{}.{}, 1.{}.{}-distroless and "
        "1.{}.{}-debug",
        variant, minor, patch, minor, patch, minor, patch);
  }
  return {};
}

bool HasHalfARelease(std::string_view image) {
  static const re2::RE2* const half = new re2::RE2("\\d+\\.\\d+");
  const Parts parts = PartsOf(image);
  return image.find('@') == image.npos && IsOfficial(parts.hub) && IsBuiltForReleases(parts.name) &&
         re2::RE2::FullMatch(std::string(parts.tag), *half);
}

std::string_view HubMeant(std::string_view image) {
  const Parts parts = PartsOf(image);
  if (!IsBuiltForReleases(parts.name) || parts.hub.empty() || IsOfficial(parts.hub)) return {};
  for (const std::string_view hub : kHubs) {
    if (LettersApart(hub, parts.hub) <= 2) return hub;
  }
  return {};
}

}  // namespace wavetank::pilot
