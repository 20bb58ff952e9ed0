#include "oracles/envoy/grpc_authorizer.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "fakes/envoy/apps/ext_authz_app.h"

namespace wavetank::envoydiff {
namespace {

// A field of fewer than 128 * 128 bytes, or one of a number below that.
std::string Field(int number, const std::string& text) {
  std::string out{static_cast<char>(number << 3 | 2)};
  if (text.size() < 128) {
    out += static_cast<char>(text.size());
  } else {
    out += static_cast<char>((text.size() & 127) | 128);
    out += static_cast<char>(text.size() >> 7);
  }
  return out + text;
}
std::string Number(int number, int value) {
  std::string out{static_cast<char>(number << 3)};
  if (value >= 128) {
    out += static_cast<char>((value & 127) | 128);
    value >>= 7;
  }
  return out + static_cast<char>(value);
}

struct Settings {
  std::atomic<int> code{200}, delay_ms{0};
  std::atomic<bool> allow{false};
  std::mutex mutex;
  std::vector<std::pair<std::string, std::string>> headers;
};

// CheckResponse{status{code}, denied_response{status{code}, headers, body}, ok_response{headers, headers_to_remove}};
// no status is OK. A header is a HeaderValueOption{header{key, value}}.
std::string Answer(bool allowed, const std::vector<std::pair<std::string, std::string>>& more) {
  std::vector<std::pair<std::string, std::string>> all = {{"x-ext-authz-check-result", allowed ? "allowed" : "denied"}};
  all.insert(all.end(), more.begin(), more.end());
  std::string headers, removed;
  for (const auto& [name, value] : all) {
    if (name != "x-envoy-auth-headers-to-remove") {
      headers += Field(2, Field(1, Field(1, name) + Field(2, value)));
      continue;
    }
    for (absl::string_view one : absl::StrSplit(value, ',')) removed += Field(5, std::string(one));
  }
  if (allowed) return Field(3, headers + removed);
  constexpr int kPermissionDenied = 7;
  return Field(1, Number(1, kPermissionDenied)) +
         Field(2, Field(1, Number(1, 403)) + headers + Field(3, envoysim::kExtAuthzDenial));
}

class Call final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Call(Settings& settings) : settings_(settings) { StartRead(&in_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    std::this_thread::sleep_for(std::chrono::milliseconds(settings_.delay_ms));
    if (settings_.code != 200) return Finish({grpc::StatusCode::UNAVAILABLE, "as the case wants it"});
    std::vector<grpc::Slice> slices;
    std::string message;
    if (in_.Dump(&slices).ok()) {
      for (const grpc::Slice& slice : slices)
        message.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    // An entry of the map of headers: its key and, next to it, its value.
    const bool allowed =
        settings_.allow || message.find(Field(1, "x-ext-authz") + Field(2, "allow")) != std::string::npos;
    std::vector<std::pair<std::string, std::string>> headers;
    {
      const std::lock_guard<std::mutex> lock(settings_.mutex);
      headers = settings_.headers;
    }
    const grpc::Slice slice(Answer(allowed, headers));
    out_ = grpc::ByteBuffer(&slice, 1);
    StartWriteAndFinish(&out_, {}, grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  Settings& settings_;
  grpc::ByteBuffer in_, out_;
};

class Authorizer final : public GrpcAuthorizer, private grpc::CallbackGenericService {
 public:
  explicit Authorizer(std::string address) : address_(std::move(address)) {}
  ~Authorizer() override { Stop(); }

  bool Set(const BackendState& state) override {
    settings_.code = state.code;
    settings_.delay_ms = state.delay_ms;
    settings_.allow = state.allow;
    {
      const std::lock_guard<std::mutex> lock(settings_.mutex);
      settings_.headers = state.headers;
    }
    if (!state.up) {
      Stop();
      return true;
    }
    if (server_ != nullptr) return true;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    return server_ != nullptr;
  }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Call(settings_);
  }
  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_ = nullptr;
  }

  const std::string address_;
  Settings settings_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

std::unique_ptr<GrpcAuthorizer> GrpcAuthorizer::Make(std::string address) {
  return std::make_unique<Authorizer>(std::move(address));
}

}  // namespace wavetank::envoydiff
