// What istiod 1.18.2 logs while it starts, as far as the simulation has what the lines are about
// (istiod: pilot/pkg/bootstrap, pkg/config/mesh/kubemesh/watcher.go, pilot/pkg/serviceregistry/kube/controller).
#pragma once

#include <string>
#include <string_view>

#include "core/base/host.h"
#include "core/base/log_line.h"
#include "core/config/mesh/mesh_watcher.h"

namespace wavetank::pilot {

struct IstiodOptions;

class StartLines {
 public:
  // Both outlive it; a sink that is empty hears nothing.
  StartLines(const LogSink& log, const Host& host, const IstiodOptions& options)
      : log_(log), host_(host), options_(options) {}

  void Begun();
  void MeshRead(const config::MeshWatcher& mesh);
  void MeshHandlers(const config::MeshWatcher& mesh) const;
  void MakingCa() const { Say("creating CA and initializing public key"); }
  enum class Signer : uint8_t { kNone, kSelfSigned, kPlugged, kOthers };
  void Controllers(Signer signer, std::string_view discovery_host) const;
  void Starting() const;
  void Started(Signer signer);
  // A registry starts; `leads`: whether istiod may lead there although it is another cluster.
  void Cluster(std::string_view id, bool config_cluster) const;
  void ShouldLead(std::string_view id, bool leads) const;
  void CachesSynced() const;
  void Ready() const;

  void Warn(std::string text) const {
    if (log_) log_({"warn", {}, std::move(text)});
  }
  void Say(std::string text, std::string_view scope = {}) const {
    if (log_) log_({"info", scope, std::move(text)});
  }

 private:
  const LogSink& log_;
  const Host& host_;
  const IstiodOptions& options_;
  Time begun_{}, waiting_{};
};

}  // namespace wavetank::pilot
