// What is told of proxies outside Kubernetes that connect and leave.
#pragma once

#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "core/base/time.h"
#include "core/model/proxy.h"

namespace wavetank::pilot {

// The type of what agents report of their applications' health: istiod takes it and answers nothing, so it is none of
// those that it serves.
inline constexpr XdsType kHealthReport{kXdsTypes};

class WorkloadRegistrar {
 public:
  virtual ~WorkloadRegistrar() = default;
  // Whether it has to do with this proxy at all; of others nothing below is said.
  virtual bool Wants(const Proxy& proxy) const = 0;
  // Calls back once, later; an error ends the stream. `locality`: the node's own.
  virtual void Register(const Proxy& proxy, const ProxyLocality& locality, Time connected,
                        absl::AnyInvocable<void(absl::Status)> done) = 0;
  // What the proxy's agent reports of its application; `why`: of an unhealthy one.
  virtual void OnHealth(const Proxy& proxy, bool healthy, const std::string& why) = 0;
  // The stream that began then has ended.
  virtual void Unregister(const Proxy& proxy, Time connected) = 0;
};

}  // namespace wavetank::pilot
