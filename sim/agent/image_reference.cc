#include "sim/agent/image_reference.h"

#include <algorithm>

#include "core/base/json_access.h"
#include "core/profile/published_images.h"
#include "fmt/format.h"
#include "re2/re2.h"

namespace wavetank::sim {
namespace {

// distribution: reference/regexp.go
const re2::RE2& WholeReference() {
  static const auto* const pattern = new re2::RE2(
      "(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))"
      "*"
      "(?::[0-9]+)?/)?"
      "[a-z0-9]+(?:(?:[._]|__|[-]*)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|[-]*)[a-z0-9]+)*)*"
      "(?::[0-9A-Za-z_][0-9A-Za-z_.-]{0,127})?"
      "(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?");
  return *pattern;
}

bool HasCapitals(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

std::string ImageReferenceError(std::string_view image) {
  static const re2::RE2* const identifier = new re2::RE2("[a-f0-9]{64}");
  if (re2::RE2::FullMatch(std::string(image), *identifier))
    return fmt::format("invalid repository name ({}), cannot specify 64-byte hexadecimal strings", image);
  // normalize.go, splitDockerDomain: what stands before the first slash is a host if it looks like one.
  const size_t slash = image.find('/');
  const std::string_view first = image.substr(0, slash == image.npos ? 0 : slash);
  const bool host = first.find_first_of(".:") != first.npos || first == "localhost" || HasCapitals(first);
  std::string domain = "docker.io", rest(image);
  if (slash != image.npos && host) {
    domain = first;
    rest = image.substr(slash + 1);
  } else if (slash == image.npos) {
    rest = "library/" + rest;
  }
  if (HasCapitals(std::string_view(rest).substr(0, rest.find(':'))))
    return "invalid reference format: repository name must be lowercase";
  const std::string whole = domain + "/" + rest;
  return re2::RE2::FullMatch(whole, WholeReference()) ? "" : "invalid reference format";
}

std::string InvalidImage(const nlohmann::json& pod_spec) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const nlohmann::json& container : Items(At(pod_spec, list))) {
      const std::string image = Text(container, "image");
      if (image.empty()) continue;
      const std::string error = ImageReferenceError(image);
      if (error.empty()) continue;
      return fmt::format(
          "InvalidImageName: Failed to apply default image tag \"{0}\": couldn't parse image reference \"{0}\": {1}",
          image, error);
    }
  }
  return {};
}

std::string UnpublishedImage(const nlohmann::json& pod_spec) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const nlohmann::json& container : Items(At(pod_spec, list))) {
      const std::string image = Text(container, "image");
      // What istiod's webhook puts in place of the word has not been put.
      if (image == "auto") {
        return "Failed to pull image \"auto\": rpc error: code = Unknown desc = failed to pull and unpack image "
               "\"docker.io/library/auto:latest\": failed to resolve reference \"docker.io/library/auto:latest\": pull "
               "access denied, repository does not exist or may require authorization: server message: "
               "insufficient_scope: authorization failed";
      }
      // Never: it was brought to the node by other means.
      if (Text(container, "imagePullPolicy") == "Never" || pilot::NeverPublished(image).empty()) continue;
      // containerd names the registry, which kubelets leave to it.
      const std::string_view first = std::string_view(image).substr(0, image.find('/'));
      const std::string whole = first.find('.') == first.npos ? "docker.io/" + image : image;
      return fmt::format(
          "Failed to pull image \"{0}\": rpc error: code = NotFound desc = failed to pull and unpack image \"{1}\": "
          "failed to resolve reference \"{1}\": {1}: not found",
          image, whole);
    }
  }
  return {};
}

}  // namespace wavetank::sim
