// Clusters that kubeconfigs lead to: each an API server in memory, by the cluster's ID.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/kube/credentials/kubeconfig.h"
#include "tests/core/kube/memory_client.h"

namespace wavetank::pilot {

inline std::string KubeconfigOf(const std::string& cluster, const std::string& token = "t0") {
  return kube::RenderKubeConfig({cluster, "https://" + cluster + ".example:6443", "", token});
}

class RemoteClusters final : public kube::ClientFactory {
 public:
  explicit RemoteClusters(Host& host) : host_(host) {}

  absl::StatusOr<std::unique_ptr<kube::Client>> Connect(const std::string& cluster, const std::string&) override {
    if (unreachable) return absl::UnavailableError("nothing answers");
    ++connected;
    return std::make_unique<Connection>(Server(cluster));
  }
  kube::MemoryClient& Server(const std::string& cluster) {
    auto& server = servers_[cluster];
    if (server == nullptr) server = std::make_unique<kube::MemoryClient>(host_);
    return *server;
  }

  bool unreachable = false;
  int connected = 0;

 private:
  // One client of the same server.
  class Connection final : public kube::Client {
   public:
    explicit Connection(kube::MemoryClient& server) : server_(server) {}
    void List(const kube::ResourceKind& kind, const kube::ListOptions& options,
              absl::AnyInvocable<void(absl::StatusOr<kube::ObjectList>)> done) override {
      server_.List(kind, options, std::move(done));
    }
    std::unique_ptr<kube::Watch> StartWatch(const kube::ResourceKind& kind, const kube::ListOptions& options,
                                            int64_t version, kube::WatchCallbacks callbacks) override {
      return server_.StartWatch(kind, options, version, std::move(callbacks));
    }
    void Apply(kube::ObjectRef object, absl::AnyInvocable<void(absl::StatusOr<kube::ObjectRef>)> done) override {
      server_.Apply(std::move(object), std::move(done));
    }
    void Delete(const kube::ResourceKind& kind, const kube::NamespacedName& name,
                absl::AnyInvocable<void(absl::Status)> done) override {
      server_.Delete(kind, name, std::move(done));
    }

   private:
    kube::MemoryClient& server_;
  };

  Host& host_;
  std::map<std::string, std::unique_ptr<kube::MemoryClient>> servers_;
};

}  // namespace wavetank::pilot
