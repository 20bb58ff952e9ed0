// Listeners that one sidecar got and the next one gets again: the replicas of a Deployment do, whatever else changes.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "core/push/push_context.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {

class SharedListeners {
 public:
  // `generate`: what it is for this proxy and this push context. It may look at anything of the context, but of a
  // sidecar only at what is compared in the .cc file.
  ResourceList Get(const Proxy& proxy, const PushContextRef& push, absl::FunctionRef<ResourceList()> generate);

 private:
  // Listeners, and what they were made from besides their key.
  struct Answer {
    SharedJson metadata;
    std::vector<ServiceRef> own_services;
    ResourceList listeners;
  };
  // Push contexts and scopes that differ in nothing that listeners show.
  struct Mesh {
    PushContextRef push;  // the first of them; it keeps the policies that the keys name
    SidecarScopeRef scope;
    std::vector<std::pair<std::weak_ptr<const PushContext>, std::weak_ptr<const SidecarScope>>> alike;
    bool shares = false;        // no listener is of one proxy alone
    bool ruled = false;         // by DestinationRules, which are not compared
    bool shows_labels = false;  // rules of TCP and TLS may look at any of them
    absl::flat_hash_map<std::string, std::vector<Answer>> answers;
    size_t size = 0;  // of them
  };
  using Meshes = std::vector<std::unique_ptr<Mesh>>;
  static constexpr size_t kMostContexts = 4, kMostAlike = 8, kMostAnswers = 4096;

  static Mesh MakeMesh(const Proxy& proxy, const PushContextRef& push);
  static bool SameMesh(const Mesh& a, const Mesh& b);
  Mesh& MeshOf(const Proxy& proxy, const PushContextRef& push);
  void Keep(const PushContextRef& push);

  // By namespace and name of the scope: each namespace has one. What keeps much alive is their push contexts.
  absl::flat_hash_map<std::pair<std::string, std::string>, Meshes> meshes_;
  std::deque<PushContextRef> contexts_;
};

}  // namespace wavetank::pilot
