// Tiny gRPC backends on loopback, and a client whose target may be "xds:///...": each call, whatever its method, is
// answered with the backend's name.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/xds_server_builder.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

namespace wavetank::serve {

// A bootstrap for one channel or server, where a process has several.
inline constexpr char kXdsBootstrapArgument[] = "grpc.TEST_ONLY_DO_NOT_USE_IN_PROD.xds_bootstrap_config";

inline constexpr char kWhoAreYou[] = "/wavetank.test.Backend/WhoAreYou";

class Backend {
 public:
  // On loopback, at any port.
  explicit Backend(const std::string& name) : service_(name) {
    grpc::ServerBuilder builder;
    Start(builder, "127.0.0.1:0", grpc::InsecureServerCredentials());
  }
  // Whose listener comes over xDS, by that bootstrap: it serves once it has one.
  Backend(const std::string& name, const std::string& address, const std::string& bootstrap) : service_(name) {
    grpc::XdsServerBuilder builder;
    builder.AddChannelArgument(kXdsBootstrapArgument, bootstrap);
    Start(builder, address, grpc::XdsServerCredentials(grpc::InsecureServerCredentials()));
  }
  ~Backend() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }
  bool ok() const { return server_ != nullptr; }
  int port() const { return port_; }  // 0: it cannot listen; of an xDS server it is not known

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(const std::string& name) : reply_(Buffer(name)) { StartRead(&request_); }
    void OnReadDone(bool ok) override {
      if (ok) {
        StartWriteAndFinish(&reply_, grpc::WriteOptions(), grpc::Status::OK);
      } else {
        Finish(grpc::Status::CANCELLED);
      }
    }
    void OnDone() override { delete this; }

   private:
    static grpc::ByteBuffer Buffer(const std::string& text) {
      const grpc::Slice slice(text);
      return {&slice, 1};
    }
    grpc::ByteBuffer request_, reply_;
  };
  class Service final : public grpc::CallbackGenericService {
   public:
    explicit Service(std::string name) : name_(std::move(name)) {}
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
      return new Reactor(name_);
    }

   private:
    const std::string name_;
  };

  void Start(grpc::ServerBuilder& builder, const std::string& where,
             const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    builder.AddListeningPort(where, credentials, &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }

  int port_ = 0;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

class BackendClient {
 public:
  explicit BackendClient(std::shared_ptr<grpc::Channel> channel) : stub_(std::move(channel)) {}

  // The name of the backend that answered, or "error: ..."; at most 5 s.
  std::string Call(bool wait_for_ready = true) {
    grpc::ClientContext context;
    context.set_wait_for_ready(wait_for_ready);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    const grpc::Slice nothing(std::string{});
    const grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer answer;
    std::promise<grpc::Status> done;
    stub_.UnaryCall(&context, kWhoAreYou, grpc::StubOptions(), &request, &answer,
                    [&](grpc::Status status) { done.set_value(std::move(status)); });
    const grpc::Status status = done.get_future().get();
    if (!status.ok()) return "error: " + std::to_string(status.error_code()) + " " + status.error_message();
    std::vector<grpc::Slice> slices;
    if (!answer.Dump(&slices).ok()) return "error: unreadable";
    std::string out;
    for (const grpc::Slice& slice : slices) out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    return out;
  }

 private:
  grpc::GenericStub stub_;
};

}  // namespace wavetank::serve
