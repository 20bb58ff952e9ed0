// WorkloadEntries that make themselves: of proxies that name a WorkloadGroup (AUTO_REGISTER_GROUP), as of virtual
// machines (istiod: pilot/pkg/autoregistration/controller.go).
//
// A proxy that connects gets an entry of its group's template, owned by the group, with istiod's name and the time in
// annotations. When its last stream has ended that time is noted, and the entry is deleted if it has not come back in
// the grace period, here or at another istiod; every ten grace periods all entries are looked at. What its agent
// reports of the application becomes condition Healthy of the entry's status; while an entry whose group has a probe is
// not healthy it is no endpoint (core/registry/crd_client.cc).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/host.h"
#include "core/kube/client.h"
#include "core/xds/workload_registrar.h"

namespace wavetank::pilot {

class WorkloadEntryController final : public WorkloadRegistrar {
 public:
  struct Options {
    std::string instance;           // istiod's pod
    Duration grace = 10s;           // PILOT_WORKLOAD_ENTRY_GRACE_PERIOD
    bool validate_identity = true;  // ISTIO_WORKLOAD_ENTRY_VALIDATE_IDENTITY
    bool health_checks = true;      // PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS
  };
  // What istiod's store holds now.
  using Objects = std::function<std::vector<kube::ObjectRef>()>;

  // `host` and `client`, of the config cluster, outlive it.
  WorkloadEntryController(Host& host, kube::Client& client, Objects objects, Options options);

  // InvalidArgument: istiod ends by a panic as it starts with that grace period.
  static absl::Status CheckGrace(Duration grace);

  void Start();

  bool Wants(const Proxy& proxy) const override;
  void Register(const Proxy& proxy, const ProxyLocality& locality, Time connected,
                absl::AnyInvocable<void(absl::Status)> done) override;
  void OnHealth(const Proxy& proxy, bool healthy, const std::string& why) override;
  void Unregister(const Proxy& proxy, Time connected) override;

 private:
  // The entry of that name; null: there is none.
  kube::ObjectRef Find(const std::string& ns, const std::string& name) const;
  absl::Status MayControl(const Proxy& proxy, const std::string& ns, const nlohmann::json& spec) const;
  void Create(const Proxy& proxy, const ProxyLocality& locality, Time connected, const kube::Object& group,
              absl::AnyInvocable<void(absl::Status)> done);
  void Write(nlohmann::json entry, absl::AnyInvocable<void(absl::Status)> done);
  void Disconnected(const std::string& ns, const std::string& name, Time connected, Time at, int tries);
  struct HealthReport {
    std::string ns, entry, why;
    bool healthy = true;
    Time at{};
  };
  void WriteHealth(const HealthReport& report, int tries);
  bool IsOver(const kube::Object& entry) const;
  void CleanUp(const kube::Object& entry);
  void LookAtAll();
  void LookAgain();
  void After(Duration delay, Callback fn);

  Host& host_;
  kube::Client& client_;
  const Objects objects_;
  const Options options_;
  std::map<std::string, int> streams_;  // by network, address and entry
  Time next_cleanup_{};
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

// Group, address and network, as far as they are told.
std::string AutoRegisteredName(const Proxy& proxy);

}  // namespace wavetank::pilot
