// Writes into the status of Istio's configurations how many proxies have them, of all istiods' reports
// (istiod: pilot/pkg/status/distribution/state.go, pilot/pkg/status/resourcelock.go). The leader of
// `istio-status-leader` does it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/host.h"
#include "core/kube/informer.h"

namespace wavetank::pilot {

class StatusLeader {
 public:
  // What istiod's store holds now.
  using Objects = std::function<std::vector<kube::ObjectRef>()>;
  // `host` and `client`, of the config cluster, outlive it.
  StatusLeader(Host& host, kube::Client& client, const std::string& ns, Objects objects);

  void Start();

 private:
  struct Progress {
    int64_t acked = 0, total = 0;
  };

  void OnReport(const kube::Object& map);
  void ReadAgain();
  void WriteAll();
  void WriteStatus(const kube::Object& object, const Progress& progress);

  Host& host_;
  kube::Client& client_;
  const Objects objects_;
  kube::Informer reports_;
  std::map<std::string, std::map<std::string, Progress>> state_;  // by resource, by reporter
  std::map<std::string, Time> heard_;                             // of reporters
  std::map<std::string, int64_t> under_way_;                      // by object: the version that is written over
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::pilot
