// Answers of EDS that one proxy got and the next one with the same view gets again: in a push thousands of proxies ask
// for the same endpoints, and from one moment to the next few services' endpoints change.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "core/model/proxy.h"
#include "core/model/push_request.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {

class PushContext;
class ResourcePool;
class SidecarScope;
class XdsCache;

// One of an answer's resources, and what it was generated with.
struct EdsAssignment {
  Resource resource;
  std::string host;  // of its service
  int64_t endpoints = 0;
  bool cached = false;
};

// What is counted (hits, costs) and what enters the cache is what it would be without this: an assignment is taken as
// it is where generating it once more would find it in the cache, or would neither find it there nor put it there. The
// others are generated once more.
class EdsAnswers {
 public:
  EdsAnswers(XdsCache* cache, ResourcePool* pool) : cache_(cache), pool_(pool) {}

  // Null if there is none. `generate` is given a cluster's name.
  const GeneratedResources* Find(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request,
                                 absl::FunctionRef<EdsAssignment(const std::string&)> generate);
  // `mark`: of the cache, before the answer was generated. None of the assignments may depend on more of the proxy than
  // its view.
  void Add(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request, uint64_t mark,
           const GeneratedResources& generated, const std::vector<EdsAssignment>& assignments);

 private:
  struct Part {
    int64_t endpoints = 0;
    bool cached = false, stale = false;
  };
  struct Answer {
    uint64_t mark = 0;
    std::weak_ptr<const PushContext> push;
    std::weak_ptr<const SidecarScope> scope;
    SharedVector<std::string> names;
    bool full = false;
    std::set<ConfigKey> configs_updated;
    bool router = false;
    ClusterId cluster;
    NetworkId network;
    ProxyLocality locality;
    std::vector<std::string> requested_network_view;
    std::vector<Part> parts;                                         // by place among the resources
    absl::flat_hash_map<std::string, std::vector<size_t>> parts_of;  // by host
    GeneratedResources generated;
  };
  static constexpr size_t kMax = 32;

  Answer* Find(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request);

  XdsCache* cache_;
  ResourcePool* pool_;
  std::vector<Answer> answers_;
  size_t oldest_ = 0;
};

}  // namespace wavetank::pilot
