// The Secrets of one cluster, for SDS (istiod: pilot/pkg/credentials/kube/secrets.go). Every event of any Secret is an
// incremental push, whoever needs it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/host.h"
#include "core/kube/informer.h"

namespace wavetank::pilot {

class SecretWatcher {
 public:
  // Gets name and namespace; `client` and `host` must outlive it.
  using Handler = std::function<void(const std::string& name, const std::string& ns)>;
  SecretWatcher(kube::Client& client, Host& host, Handler handler);

  void Start() { secrets_.Start(); }
  bool HasSynced() const { return secrets_.HasSynced(); }
  // Null for what is not there and for tokens of service accounts and Helm's releases.
  kube::ObjectRef Get(std::string_view ns, std::string_view name) const;

 private:
  kube::Informer secrets_;
};

}  // namespace wavetank::pilot
