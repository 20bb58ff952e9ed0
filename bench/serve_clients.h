// Clients for bench/serve.cc, in a process of their own: gRPC's threads are shared by all that a process does, so
// clients beside the server would wait for each other where those of other machines do not.
//
// The parent starts itself again with --clients ADDRESS COUNT KIND and writes the node's bytes, length first, to the
// child's standard input; the child says each arrival as eight bytes, the steady clock's nanoseconds (which is one for
// all processes), and goes when its standard input ends.
#pragma once

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/xds/proto_adapter.h"
#include "envoy/service/discovery/v3/ads.grpc.pb.h"

namespace wavetank::serve {

namespace discovery = envoy::service::discovery::v3;
using RealClock = std::chrono::steady_clock;

inline constexpr char kWatched[] = "outbound|80||many.sample.svc.cluster.local";

inline int64_t RealNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(RealClock::now().time_since_epoch()).count();
}

// Fair clients ask once, read, and ACK. Deaf ones ask without pause and read nothing; greedy ones ask without pause and
// read, so that nothing holds them back. Both come again when they are hung up on.
enum class BenchKind : int { kFair, kDeaf, kGreedy };

// One client with a connection of its own.
class BenchClient {
 public:
  BenchClient(const std::string& address, const envoy::config::core::v3::Node& node, int number, BenchKind kind)
      : node_(node), kind_(kind) {
    grpc::ChannelArguments arguments;
    arguments.SetInt("wavetank.client", number);
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = discovery::AggregatedDiscoveryService::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    new Stream(*this);
  }

 private:
  // Deletes itself at its end. The process ends before its clients do.
  class Stream final : public grpc::ClientBidiReactor<discovery::DiscoveryRequest, discovery::DiscoveryResponse> {
   public:
    explicit Stream(BenchClient& owner) : owner_(owner) {
      request_.set_type_url(std::string(pilot::TypeUrl(pilot::XdsType::kEds)));
      request_.add_resource_names(kWatched);
      *request_.mutable_node() = owner.node_;
      owner.stub_->async()->StreamAggregatedResources(&context_, this);
      if (owner.kind_ != BenchKind::kDeaf) StartRead(&response_);
      StartWrite(&request_);
      StartCall();
    }
    void OnReadDone(bool ok) override {
      if (!ok) return;
      if (owner_.kind_ == BenchKind::kGreedy) return StartRead(&response_);
      const int64_t now = RealNow();
      if (write(STDOUT_FILENO, &now, sizeof(now)) != sizeof(now)) _exit(1);
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        next_.set_type_url(response_.type_url());
        next_.set_version_info(response_.version_info());
        next_.set_response_nonce(response_.nonce());
        if (next_.resource_names_size() == 0) next_.add_resource_names(kWatched);
        unsaid_ = true;
        if (!writing_) WriteNext();
      }
      StartRead(&response_);
    }
    void OnWriteDone(bool ok) override {
      const std::lock_guard<std::mutex> lock(mutex_);
      writing_ = false;
      if (!ok) return;
      if (owner_.kind_ != BenchKind::kFair) {
        request_.clear_node();
        StartWrite(&request_);
      } else if (unsaid_) {
        WriteNext();
      }
    }
    void OnDone(const grpc::Status&) override {
      BenchClient& owner = owner_;
      delete this;
      if (owner.kind_ != BenchKind::kFair) new Stream(owner);
    }

   private:
    // One write at a time; an ACK that waits is replaced by the next one.
    void WriteNext() {
      unsaid_ = false;
      writing_ = true;
      request_ = next_;
      StartWrite(&request_);
    }

    BenchClient& owner_;
    grpc::ClientContext context_;
    std::mutex mutex_;
    discovery::DiscoveryRequest request_, next_;
    bool writing_ = true, unsaid_ = false;
    discovery::DiscoveryResponse response_;
  };

  const envoy::config::core::v3::Node node_;
  const BenchKind kind_;
  std::unique_ptr<discovery::AggregatedDiscoveryService::Stub> stub_;
};

inline void AllowManyFiles() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

inline bool ReadAll(int fd, void* to, size_t size) {
  auto* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = read(fd, at, size);
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

// The child's main.
inline int RunClients(const std::string& address, int count, BenchKind kind) {
  AllowManyFiles();
  // They stand for other machines: what they do themselves must not take the processor from the others.
  if (kind != BenchKind::kFair) setpriority(PRIO_PROCESS, 0, 19);
  uint64_t size = 0;
  if (!ReadAll(STDIN_FILENO, &size, sizeof(size))) return 1;
  std::string bytes(size, '\0');
  envoy::config::core::v3::Node node;
  if (!ReadAll(STDIN_FILENO, bytes.data(), size) || !node.ParseFromString(bytes)) return 1;
  std::vector<std::unique_ptr<BenchClient>> clients;
  for (int i = 0; i < count; ++i) clients.push_back(std::make_unique<BenchClient>(address, node, i, kind));
  char end = 0;
  ReadAll(STDIN_FILENO, &end, 1);
  _exit(0);  // gRPC's threads need no goodbye
}

// The parent's view of such a process.
class ClientProcess {
 public:
  ClientProcess(const std::string& address, const envoy::config::core::v3::Node& node, int count, BenchKind kind) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
    const std::string number = std::to_string(count), what = std::to_string(static_cast<int>(kind));
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      execl("/proc/self/exe", "bench_serve", "--clients", address.c_str(), number.c_str(), what.c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
    const std::string bytes = node.SerializeAsString();
    const uint64_t size = bytes.size();
    if (write(to_, &size, sizeof(size)) < 0 || write(to_, bytes.data(), bytes.size()) < 0)
      close(std::exchange(to_, -1));
  }
  ~ClientProcess() {
    if (pid_ <= 0) return;
    close(to_);
    close(from_);
    waitpid(pid_, nullptr, 0);
  }
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  // The next `count` arrivals, or fewer after a minute.
  std::vector<int64_t> Await(size_t count) {
    std::vector<int64_t> out;
    const auto patience = RealClock::now() + std::chrono::seconds(60);
    while (out.size() < count && RealClock::now() < patience) {
      pollfd wait{from_, POLLIN, 0};
      if (poll(&wait, 1, 1000) <= 0) continue;
      int64_t at = 0;
      if (!ReadAll(from_, &at, sizeof(at))) break;
      out.push_back(at);
    }
    return out;
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

}  // namespace wavetank::serve
