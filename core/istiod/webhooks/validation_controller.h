// Keeps the ValidatingWebhookConfigurations of istiod's revision, in its own cluster, up to date: its CA bundle, and
// `failurePolicy: Fail` from the moment on when a configuration that is none has been refused (istiod:
// pkg/webhooks/validation/controller/controller.go). No election decides: every istiod does it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/host.h"
#include "core/base/log_line.h"
#include "core/kube/informer.h"
#include "nlohmann/json.hpp"

namespace wavetank::pilot {

class ValidationController {
 public:
  struct Options {
    std::string revision = "default", system_namespace = "istio-system";
    std::function<std::string()> ca_bundle;  // PEM; empty: there is none yet
    // What the API server would answer to the creation of an object, as client-go prints it; nothing is stored.
    std::function<absl::Status(const nlohmann::json& object)> dry_run;
    LogSink log;
  };
  // `client` and `host` outlive it.
  ValidationController(kube::Client& client, Host& host, Options options);

  void Start() { configurations_.Start(); }
  void OnBundleChanged() { SyncAll(); }
  // Nothing is to be written, nor soon to be tried again.
  bool Idle() const;

 private:
  void Add(const std::string& name);
  void SyncAll();
  void Go();    // on with the queue, soon
  void Next();  // the first of the queue
  void Reconcile(const std::string& name);
  void TryInvalid(const std::string& name);
  void Update(const std::string& name, bool ready);
  void Retry(const std::string& name, const std::string& why);
  void Done();
  void Say(std::string_view level, std::string text, std::string_view scope = "validationController") const;

  kube::Client& client_;
  Host& host_;
  const Options options_;
  kube::Informer configurations_;
  bool rejected_ = false;  // the dry run, once
  bool busy_ = false;
  std::deque<std::string> queue_;
  std::map<std::string, int> failures_;  // in a row; their next try is timed
  int waiting_ = 0;                      // tries that come within seconds
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::pilot
