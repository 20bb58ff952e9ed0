// A cluster served over HTTP on loopback, its store on a thread of its own that goes along with real time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "core/x509/calendar.h"
#include "core/x509/x509.h"
#include "fakes/kube/cluster.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/http/transport/server.h"
#include "sim/kernel/kernel.h"
#include "tests/await.h"

namespace wavetank::fakekube::http {

class ServedCluster {
 public:
  struct Options {
    ClusterOptions cluster;
    RestOptions rest;
    ServerOptions server;
    uint16_t port = 0;
    int64_t first_resource_version = 0;  // 0: the store's own
    // The store's thread takes its next task only so long after the one before: for tests of slow stores.
    std::chrono::milliseconds nap{0};
    bool tls = false;                  // with a certificate that nobody vouches for
    bool client_certificates = false;  // clients are asked for one of that certificate's
  };

  explicit ServedCluster(Options options) : options_(std::move(options)) {
    if (options_.cluster.name.empty()) options_.cluster.name = "cluster1";
    if (options_.cluster.nodes.empty()) options_.cluster.nodes = {{"node1", "r1", "z1", ""}, {"node2", "r1", "z2", ""}};
    // Pods come up fast: real time passes here.
    for (Duration* delay : {&options_.cluster.schedule, &options_.cluster.container_start, &options_.cluster.readiness,
                            &options_.cluster.termination}) {
      *delay = 10ms;
    }
    options_.cluster.readiness_jitter = 1ms;
    if (options_.first_resource_version > 0) options_.cluster.first_resource_version = options_.first_resource_version;
    cluster_ = std::make_unique<Cluster>(host_, options_.cluster, nullptr, nullptr);
    options_.rest.tokens = &tokens_;
    rest_ = std::make_unique<RestApi>(cluster_->api(), options_.rest);
    server_ = std::make_unique<Server>(options_.server, [this](uint64_t, absl::AnyInvocable<void()> task) {
      const std::lock_guard<std::mutex> lock(mutex_);
      tasks_.push_back(std::move(task));
      wake_.notify_one();
    });
    if (options_.tls) {
      TlsIdentity identity = SelfSigned();
      if (options_.client_certificates) identity.client_ca_pem = identity.certificates_pem;
      const absl::Status taken = server_->UseTls(identity);
      if (!taken.ok()) port_ = taken;
    }
    if (port_.ok())
      port_ = server_->Listen("127.0.0.1", options_.port,
                              [this](const Request& request) { return rest_->Handle(request); });
    thread_ = std::thread([this] { Run(); });
    if (port_.ok()) server_->Start();
  }
  ~ServedCluster() {
    server_->Stop();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      wake_.notify_one();
    }
    thread_.join();
  }

  const absl::StatusOr<uint16_t>& port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(*port_); }
  Server& server() { return *server_; }

  // On the store's thread.
  template <class Fn>
  auto Call(Fn fn) {
    using Result = std::invoke_result_t<Fn, Cluster&>;
    std::packaged_task<Result()> task([this, fn = std::move(fn)]() mutable { return fn(*cluster_); });
    std::future<Result> result = task.get_future();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      tasks_.push_back([task = std::move(task)]() mutable { task(); });
      wake_.notify_one();
    }
    return result.get();
  }

 private:
  static TlsIdentity SelfSigned() {
    const x509::KeyPairRef key = x509::KeyPair::Derive(7, "served cluster");
    x509::CertificateSpec spec;
    spec.not_before = x509::FromUnixSeconds(0);
    spec.not_after = x509::FromUnixSeconds(int64_t{1} << 32);
    spec.subject.common_name = "kube-apiserver";
    return {(*x509::Certificate::SelfSign(spec, *key))->ToPem(), key->ExportPrivateKeyPem(), ""};
  }

  void Run() {
    const auto start = std::chrono::steady_clock::now();
    for (;;) {
      absl::AnyInvocable<void()> task;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait_for(lock, std::chrono::milliseconds(5), [&] { return stopping_ || !tasks_.empty(); });
        if (stopping_ && tasks_.empty()) return;
        if (!tasks_.empty()) {
          task = std::move(tasks_.front());
          tasks_.pop_front();
        }
      }
      kernel_.RunUntil(Time{} + std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start));
      if (task) {
        task();
        if (options_.nap.count() > 0) LetTimePass(options_.nap);
      }
    }
  }

  Options options_;
  sim::Kernel kernel_{1};
  Host& host_ = kernel_.NewHost("cluster1", 0, nullptr);
  kube::TokenAuthority tokens_{1, "cluster1"};
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<RestApi> rest_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<absl::AnyInvocable<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;
  std::unique_ptr<Server> server_;
  absl::StatusOr<uint16_t> port_ = uint16_t{0};
};

}  // namespace wavetank::fakekube::http
