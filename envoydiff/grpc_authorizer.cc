#include "envoydiff/grpc_authorizer.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "fakes/envoy/ext_authz_app.h"

namespace wavetank::envoydiff {
namespace {

// A field of bytes, or, without `text`, one of a number below 128 * 128.
std::string Field(int number, const std::string& text) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(text.size())} + text;
}
std::string Number(int number, int value) {
  std::string out{static_cast<char>(number << 3)};
  if (value >= 128) {
    out += static_cast<char>((value & 127) | 128);
    value >>= 7;
  }
  return out + static_cast<char>(value);
}

// CheckResponse{status{code}, denied_response{status{code}, body}}; nothing said is OK.
std::string Answer(bool allowed) {
  if (allowed) return "";
  constexpr int kPermissionDenied = 7;
  return Field(1, Number(1, kPermissionDenied)) +
         Field(2, Field(1, Number(1, 403)) + Field(3, envoysim::kExtAuthzDenial));
}

struct Settings {
  std::atomic<int> code{200}, delay_ms{0};
};

class Call final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Call(const Settings& settings) : settings_(settings) { StartRead(&in_); }
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
    const bool allowed = message.find(Field(1, "x-ext-authz") + Field(2, "allow")) != std::string::npos;
    const grpc::Slice slice(Answer(allowed));
    out_ = grpc::ByteBuffer(&slice, 1);
    StartWriteAndFinish(&out_, {}, grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  const Settings& settings_;
  grpc::ByteBuffer in_, out_;
};

class Authorizer final : public GrpcAuthorizer, private grpc::CallbackGenericService {
 public:
  explicit Authorizer(std::string address) : address_(std::move(address)) {}
  ~Authorizer() override { Stop(); }

  bool Set(const BackendState& state) override {
    settings_.code = state.code;
    settings_.delay_ms = state.delay_ms;
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
