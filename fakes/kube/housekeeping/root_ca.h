// kube-root-ca.crt in every namespace: by it pods know their API server (kubernetes: pkg/controller/certificates/
// rootcacertpublisher). What it holds is what the ConfigMap of that name in kube-system holds; without that there is
// none, as in worlds whose API servers no real client sees.
#pragma once

#include <string>

#include "fakes/kube/control/controller.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class RootCaPublisher final : public Controller {
 public:
  explicit RootCaPublisher(ApiServer& api);

  bool Settled() const override { return pending_.idle(); }

 private:
  void Publish(const std::string& ns);

  ApiServer& api_;
  PendingWork pending_;
  NameQueue queue_;
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
