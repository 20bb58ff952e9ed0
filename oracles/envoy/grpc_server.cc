#include "oracles/envoy/grpc_server.h"

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/envoyapi/descriptors.h"
#include "fakes/envoy/apps/ext_authz_app.h"
#include "fmt/format.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"

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

// What a server says to one message; nothing of one: a status alone.
struct Said {
  grpc::Status status;
  std::optional<std::string> message;
};
using Answerer = std::function<Said(const std::string& message, const BackendState& state)>;  // not of health checks

struct Settings {
  Answerer answer;
  std::mutex mutex;
  BackendState state;

  BackendState now() {
    const std::lock_guard<std::mutex> lock(mutex);
    return state;
  }
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

Said Authorize(const std::string& message, const BackendState& state) {
  if (state.code != 200) return {{grpc::StatusCode::UNAVAILABLE, "as the case wants it"}, {}};
  // An entry of the map of headers: its key and, next to it, its value.
  const bool allowed = state.allow || message.find(Field(1, "x-ext-authz") + Field(2, "allow")) != std::string::npos;
  return {grpc::Status::OK, Answer(allowed, state.headers)};
}

// A message by its name out of its bytes, as JSON.
nlohmann::json Read(const std::string& type, const std::string& bytes) {
  const std::unique_ptr<google::protobuf::Message> message = pilot::NewEnvoyMessage(type);
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  if (message == nullptr || !message->ParseFromString(bytes) ||
      !google::protobuf::util::MessageToJsonString(*message, &text, options).ok()) {
    return nlohmann::json::object();
  }
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string Written(const std::string& type, const nlohmann::json& json) {
  const std::unique_ptr<google::protobuf::Message> message = pilot::NewEnvoyMessage(type);
  if (message == nullptr || !google::protobuf::util::JsonStringToMessage(json.dump(), message.get()).ok()) return {};
  return message->SerializeAsString();
}

const char* UnitOf(uint32_t seconds) {
  constexpr std::pair<uint32_t, const char*> kUnits[] = {{1, "SECOND"}, {60, "MINUTE"}, {3600, "HOUR"}, {86400, "DAY"}};
  for (const auto& [length, name] : kUnits) {
    if (length == seconds) return name;
  }
  return "UNKNOWN";
}

Said Limit(envoysim::RateLimiter& limiter, const std::string& message, const BackendState& state) {
  if (state.code != 200) return {{grpc::StatusCode::UNAVAILABLE, "as the case wants it"}, {}};
  const nlohmann::json question = Read("envoy.service.ratelimit.v3.RateLimitRequest", message);
  std::vector<envoysim::LimitedDescriptor> descriptors;
  for (const auto& descriptor : question.value("descriptors", nlohmann::json::array())) {
    envoysim::LimitedDescriptor& made = descriptors.emplace_back();
    for (const auto& entry : descriptor.value("entries", nlohmann::json::array())) {
      made.emplace_back(entry.value("key", ""), entry.value("value", ""));
    }
  }
  const Time now{std::chrono::steady_clock::now().time_since_epoch()};
  const envoysim::LimitVerdict verdict = limiter.Ask(descriptors, now);
  nlohmann::json answer = {{"overall_code", verdict.over ? "OVER_LIMIT" : "OK"}, {"statuses", nlohmann::json::array()}};
  for (const auto& status : verdict.statuses) {
    nlohmann::json one = {{"code", status.over ? "OVER_LIMIT" : "OK"}};
    if (status.limit != nullptr) {
      one["current_limit"] = {{"name", status.limit->name},
                              {"requests_per_unit", status.limit->requests},
                              {"unit", UnitOf(status.limit->window_seconds)}};
      one["limit_remaining"] = status.remaining;
      one["duration_until_reset"] = fmt::format("{}s", status.reset_seconds);
    }
    answer["statuses"].push_back(one);
  }
  for (const auto& [name, value] : state.headers) {
    answer["response_headers_to_add"].push_back({{"key", name}, {"value", value}});
  }
  return {grpc::Status::OK, Written("envoy.service.ratelimit.v3.RateLimitResponse", answer)};
}

Said AnswerAnyCall(const std::string&, const BackendState& state) {
  if (state.grpc_status == 0) return {grpc::Status::OK, ""};
  return {{static_cast<grpc::StatusCode>(state.grpc_status), state.grpc_message}, {}};
}

class Call final : public grpc::ServerGenericBidiReactor {
 public:
  Call(Settings& settings, grpc::GenericCallbackServerContext& context) : settings_(settings), context_(context) {
    StartRead(&in_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    state_ = settings_.now();
    if (state_.delay_ms == 0) return Respond();
    // Not by sleeping: threads are few, and the calls of a client that has given up would hold them from the next ones.
    delay_.Set(std::chrono::system_clock::now() + std::chrono::milliseconds(state_.delay_ms),
               [this](bool) { Respond(); });
  }
  void OnDone() override { delete this; }

 private:
  void Respond() {
    std::vector<grpc::Slice> slices;
    std::string message;
    if (in_.Dump(&slices).ok()) {
      for (const grpc::Slice& slice : slices)
        message.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    for (const auto& [name, value] : state_.trailers) context_.AddTrailingMetadata(name, value);
    Said said = settings_.answer(message, state_);
    if (said.message && context_.method() == kHealthMethod) said.message = std::string(kServing);
    if (!said.message) return Finish(said.status);
    const grpc::Slice slice(*said.message);
    out_ = grpc::ByteBuffer(&slice, 1);
    StartWriteAndFinish(&out_, {}, said.status);
  }

  Settings& settings_;
  grpc::GenericCallbackServerContext& context_;
  BackendState state_;
  grpc::Alarm delay_;
  grpc::ByteBuffer in_, out_;
};

class Calls final : public grpc::CallbackGenericService {
 public:
  explicit Calls(Settings& settings) : settings_(settings) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Call(settings_, *context);
  }

 private:
  Settings& settings_;
};

class Server final : public GrpcServer {
 public:
  Server(std::string address, Answerer answer) : address_(std::move(address)) { settings_.answer = std::move(answer); }
  ~Server() override { Stop(); }

  bool Set(const BackendState& state) override {
    {
      const std::lock_guard<std::mutex> lock(settings_.mutex);
      settings_.state = state;
    }
    if (!state.up) {
      Stop();
      return true;
    }
    if (server_ != nullptr) return true;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    // grpc-timeout is the proxy's business here: a server that gives up by itself would race it.
    builder.AddChannelArgument(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0);
    calls_ = std::make_unique<Calls>(settings_);  // of one server only
    builder.RegisterCallbackGenericService(calls_.get());
    server_ = builder.BuildAndStart();
    return server_ != nullptr;
  }

 private:
  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_ = nullptr;
  }

  const std::string address_;
  Settings settings_;
  std::unique_ptr<Calls> calls_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

std::unique_ptr<GrpcServer> GrpcServer::Authorizer(std::string address) {
  return std::make_unique<Server>(std::move(address), Authorize);
}

std::unique_ptr<GrpcServer> GrpcServer::Limiter(std::string address, std::vector<envoysim::ServiceLimit> limits) {
  auto limiter = std::make_shared<envoysim::RateLimiter>(std::move(limits));
  auto mutex = std::make_shared<std::mutex>();
  return std::make_unique<Server>(std::move(address), [=](const std::string& message, const BackendState& state) {
    const std::lock_guard<std::mutex> lock(*mutex);
    return Limit(*limiter, message, state);
  });
}

std::unique_ptr<GrpcServer> GrpcServer::Application(std::string address) {
  return std::make_unique<Server>(std::move(address), AnswerAnyCall);
}

}  // namespace wavetank::envoydiff
