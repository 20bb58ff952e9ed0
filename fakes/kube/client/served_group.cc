#include "fakes/kube/client/served_group.h"

#include <algorithm>
#include <utility>

namespace wavetank::fakekube {

ServedGroup::ServedGroup(ApiServer& server, const std::string& group, const std::vector<std::string>& kinds,
                         std::function<void()> served)
    : served_(std::move(served)) {
  constexpr const char* kDefinition = "CustomResourceDefinition";
  const auto defines = [suffix = "." + group](const ObjectRef& definition) {
    return definition->meta.name.ends_with(suffix);
  };
  const std::vector<ObjectRef> definitions = server.List(kDefinition);
  bool there = std::any_of(definitions.begin(), definitions.end(), defines);
  for (const std::string& kind : kinds) there = there || !server.List(kind + "." + group).empty();
  if (there) {
    Tell();
    return;
  }
  watched_.Add(server.Observe(kDefinition, [this, defines](const Change& change) {
    if (change.type != kube::WatchEventType::kDeleted && defines(change.object)) Tell();
  }));
  for (const std::string& kind : kinds) {
    watched_.Add(server.Observe(kind + "." + group, [this](const Change& change) {
      if (change.type != kube::WatchEventType::kDeleted) Tell();
    }));
  }
}

void ServedGroup::Tell() {
  if (served_) std::exchange(served_, nullptr)();
}

}  // namespace wavetank::fakekube
