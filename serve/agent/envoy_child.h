// The Envoy of a real agent: a child process, and its admin interface over loopback.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "core/agent/envoy_life.h"
#include "serve/agent/child_process.h"
#include "serve/agent/environment.h"
#include "serve/agent/real_host.h"

namespace wavetank::serve {

class EnvoyChild final : public agent::EnvoyControl {
 public:
  struct Options {
    std::string program;
    std::vector<std::string> arguments;
    Environment environment;
    uint16_t admin_port = 15000;
    bool sidecar = true;
    agent::Log log;
  };
  // `on_exit` on the host's thread, once.
  EnvoyChild(RealHost& host, Options options, std::function<void(const agent::ProcessEnd&)> on_exit);
  ~EnvoyChild() override;

  absl::Status Start() override;
  void Drain(absl::AnyInvocable<void(absl::Status)> done) override;
  void ActiveConnections(absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) override;
  void Kill() override;

  pid_t pid() const { return child_.pid(); }
  // A page of its admin interface; on any thread, and waits.
  static absl::StatusOr<std::string> Page(uint16_t admin_port, std::string_view method, std::string_view path);

 private:
  void Look();

  RealHost& host_;
  const Options options_;
  std::function<void(const agent::ProcessEnd&)> on_exit_;
  ChildProcess child_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::serve
