#include "serve/manifest_watch.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/base/status.h"
#include "fmt/format.h"
#include "scenarios/mesh/manifests.h"
#include "sim/inputs/kinds/objects.h"

namespace wavetank::serve {

namespace fs = std::filesystem;
using nlohmann::json;

ManifestWatch::ManifestWatch(Loop& loop, const std::vector<scenario::ClusterSpec>& clusters, Options options)
    : loop_(loop), options_(std::move(options)) {
  for (const scenario::ClusterSpec& cluster : clusters) {
    Watched watched{&cluster, Look(cluster), {}, {}};
    watched.last = watched.known;
    if (absl::StatusOr<Objects> objects = Load(cluster, nullptr); objects.ok()) watched.objects = *std::move(objects);
    watched_.push_back(std::move(watched));
  }
  thread_ = std::thread([this] { Run(); });
}

ManifestWatch::~ManifestWatch() {
  stop_.Raise();
  thread_.join();
}

ManifestWatch::Stamp ManifestWatch::Look(const scenario::ClusterSpec& cluster) {
  Stamp out;
  const auto add = [&](const fs::path& path) {
    std::error_code error;
    const auto modified = fs::last_write_time(path, error);
    if (error) return;
    const uint64_t size = fs::file_size(path, error);
    out.emplace_back(path.string(), modified.time_since_epoch().count(), error ? 0 : size);
  };
  for (const scenario::ManifestSpec& spec : cluster.manifests) {
    if (spec.path.empty()) continue;  // its objects stand in the scenario, which is read once
    std::error_code error;
    if (!fs::is_directory(spec.path, error)) {
      add(spec.path);
      continue;
    }
    for (fs::recursive_directory_iterator it(spec.path, error), end; !error && it != end; it.increment(error)) {
      if (it->is_regular_file(error)) add(it->path());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

absl::StatusOr<ManifestWatch::Objects> ManifestWatch::Load(const scenario::ClusterSpec& cluster,
                                                           std::vector<std::string>* notes) {
  absl::StatusOr<std::vector<json>> objects = scenario::LoadClusterManifests(cluster, notes);
  if (!objects.ok()) return objects.status();
  Objects out;
  for (json& object : *objects) {
    const json& meta = object["metadata"];
    const Key key{object.value("kind", ""), meta.value("namespace", ""), meta.value("name", "")};
    out[key] = std::move(object);
  }
  return out;
}

void ManifestWatch::Run() {
  while (stop_.Wait(options_.period)) {
    for (Watched& watched : watched_) {
      Stamp now = Look(*watched.cluster);
      const bool quiet = now == watched.last;
      watched.last = std::move(now);
      if (quiet && watched.last != watched.known) Take(watched);
    }
  }
}

void ManifestWatch::Take(Watched& watched) {
  const std::string& cluster = watched.cluster->name;
  const auto say = [&](std::string text) {
    if (options_.report) options_.report(fmt::format("{}: {}", cluster, text));
  };
  watched.known = watched.last;
  std::vector<std::string> notes;
  absl::StatusOr<Objects> objects = Load(*watched.cluster, &notes);
  if (!objects.ok()) return say(std::string(Message(objects.status())));
  for (std::string& note : notes) say(std::move(note));
  // Namespaces first: what is in them needs them.
  std::vector<sim::Input> inputs, others;
  for (const auto& [key, object] : *objects) {
    const auto before = watched.objects.find(key);
    if (before != watched.objects.end() && before->second == object) continue;
    (std::get<0>(key) == "Namespace" ? inputs : others).push_back(sim::inputs::ApplyObject{cluster, object});
  }
  inputs.insert(inputs.end(), others.begin(), others.end());
  const size_t applied = inputs.size();
  for (const auto& [key, object] : watched.objects) {
    if (objects->contains(key)) continue;
    inputs.push_back(sim::inputs::DeleteObject{cluster, std::get<0>(key), std::get<1>(key), std::get<2>(key)});
  }
  watched.objects = *std::move(objects);
  if (inputs.empty()) return;
  const auto refused = loop_.Call([&](sim::World& world) {
    std::vector<std::string> out;
    for (const sim::Input& input : inputs) {
      if (absl::Status status = world.Do(input); !status.ok()) out.emplace_back(Message(status));
    }
    return out;
  });
  if (!refused) return;
  say(fmt::format("{} applied, {} deleted", applied, inputs.size() - applied));
  for (const std::string& why : *refused) say(why);
}

}  // namespace wavetank::serve
