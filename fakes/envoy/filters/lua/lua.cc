#include "fakes/envoy/filters/lua/lua.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "envoy/extensions/filters/http/lua/v3/lua.pb.h"
#include "fakes/envoy/config/route_config.h"
#include "fakes/envoy/filters/lua/vm.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/request_edit.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoysim {
namespace {

using LuaProto = envoy::extensions::filters::http::lua::v3::Lua;
using LuaRouteProto = envoy::extensions::filters::http::lua::v3::LuaPerRoute;

// A script that loads; each Envoy has an interpreter of its own for it.
struct LuaScript {
  uint64_t id = NextFilterId();
  std::string code;
  bool on_request = false, on_reply = false;
};

absl::StatusOr<std::shared_ptr<const LuaScript>> MakeLuaScript(std::string code) {
  const absl::StatusOr<std::unique_ptr<LuaVm>> vm = LuaVm::Load(code);
  if (!vm.ok()) return vm.status();
  auto out = std::make_shared<LuaScript>();
  out->code = std::move(code);
  out->on_request = (*vm)->Has("envoy_on_request");
  out->on_reply = (*vm)->Has("envoy_on_response");
  return out;
}

// The files that a simulated Envoy's configuration names are not there.
absl::StatusOr<std::shared_ptr<const LuaScript>> MakeLuaScript(const envoy::config::core::v3::DataSource& source) {
  if (source.has_filename()) {
    return absl::InvalidArgumentError(fmt::format("file {} does not exist", source.filename()));
  }
  return MakeLuaScript(source.has_inline_bytes() ? source.inline_bytes() : source.inline_string());
}

struct RouteScript final : RouteFilterConfig {
  bool disabled = false;
  std::string name;  // of the filter's sources, or
  std::shared_ptr<const LuaScript> script;
};

struct LuaInterpreter final : FilterState {
  std::unique_ptr<LuaVm> vm;
};

// What all uses of a stream share, of requests and of answers.
class LuaTurn : public LuaStream {
 public:
  explicit LuaTurn(HttpStream& stream) : stream_(&stream) {}
  // A later turn of the same request.
  virtual void Return(HttpStream& stream) { stream_ = &stream; }

  bool Respond(LuaHeaders headers, std::string body) override {
    answer_.emplace(std::move(headers), std::move(body));
    return true;
  }
  void Log(std::string_view level, const std::string& text) override { stream_->ScriptLog(level, text); }
  nlohmann::json RouteMetadata() const override {
    const RouteEntry* const route = stream_->route();
    return route == nullptr || route->lua_metadata == nullptr ? nlohmann::json::object() : *route->lua_metadata;
  }
  nlohmann::json DynamicMetadataOf(const std::string& filter) const override {
    const nlohmann::json all = AllDynamicMetadata();
    const auto found = all.find(filter);
    return found == all.end() ? nlohmann::json() : *found;
  }
  nlohmann::json AllDynamicMetadata() const override {
    nlohmann::json out = nlohmann::json::object();
    for (const MetadataNote& note : stream_->notes()) {
      nlohmann::json& value = out[std::string(note.filter)][std::string(note.key)];
      value = note.tree != nullptr ? *note.tree : nlohmann::json(std::string(note.text));
    }
    return out;
  }
  void SetDynamicMetadata(const std::string& filter, const std::string& key, nlohmann::json value) override {
    stream_->Note(
        {stream_->Keep(filter), stream_->Keep(key), {}, std::make_shared<const nlohmann::json>(std::move(value))});
  }
  std::optional<std::string> Info(std::string_view what) const override {
    const ConnectionFacts facts = stream_->connection();
    if (what == "protocol") return std::string(HttpProtocolName(stream_->request().protocol));
    if (what == "routeName") return stream_->route() == nullptr ? "" : stream_->route()->name;
    if (what == "virtualClusterName") return "";
    if (what == "downstreamLocalAddress") return stream_->DownstreamAddress(/*remote=*/false);
    if (what == "downstreamDirectRemoteAddress" || what == "downstreamRemoteAddress") {
      return stream_->DownstreamAddress(/*remote=*/true);
    }
    if (what == "requestedServerName") return std::string(facts.server_name);
    if (what == "tls" && facts.tls) return "true";
    if (what == "peerCertificatePresented" && !facts.identity.empty()) return "true";
    if (what == "uriSanPeerCertificate" && !facts.identity.empty()) return std::string(facts.identity);
    return std::nullopt;
  }
  int64_t NowMicroseconds() const override {
    return std::chrono::duration_cast<std::chrono::microseconds>(stream_->now().time_since_epoch()).count();
  }
  double Random() override { return static_cast<double>(stream_->random().Below(uint64_t{1} << 52)) / 0x1p52; }

  const std::optional<std::pair<LuaHeaders, std::string>>& answer() const { return answer_; }

 protected:
  HttpStream* stream_;

 private:
  std::optional<std::pair<LuaHeaders, std::string>> answer_;
};

class LuaRequest final : public LuaTurn {
 public:
  explicit LuaRequest(HttpStream& stream) : LuaTurn(stream), edit_(stream.request()) {}
  void Return(HttpStream& stream) override {
    LuaTurn::Return(stream);
    edit_ = RequestEdit(stream.request());
  }

  bool is_request() const override { return true; }
  LuaHeaders Headers() const override {
    const RequestSpec& now = edit_.now();
    LuaHeaders out = {{":authority", now.authority}, {":path", now.path}, {":method", now.method}};
    out.insert(out.end(), now.headers.begin(), now.headers.end());
    return out;
  }
  void Add(const std::string& name, const std::string& value) override { edit_.Add(name, value); }
  void Replace(const std::string& name, const std::string& value) override { edit_.Set(name, value); }
  void Remove(const std::string& name) override { edit_.Remove(name); }
  std::optional<std::string> Body() const override { return std::nullopt; }
  void SetBody(std::string) override {}
  bool Call(const std::string& cluster, LuaHeaders headers, const std::string& body, int64_t timeout_ms,
            bool asynchronous) override {
    if (!stream_->MembersOf(cluster).known) return false;
    call_.cluster = cluster;
    call_.timeout = std::chrono::milliseconds(timeout_ms);
    auto request = std::make_shared<RequestSpec>();
    request->headers.clear();
    for (auto& [name, value] : headers) {
      if (name == ":path") {
        request->path = value;
      } else if (name == ":method") {
        request->method = value;
      } else if (name == ":authority") {
        request->authority = value;
      } else {
        request->headers.emplace_back(std::move(name), std::move(value));
      }
    }
    if (!body.empty()) request->headers.emplace_back("content-length", std::to_string(body.size()));
    if (asynchronous) {
      asynchronous_.push_back({call_, std::move(request)});
    } else {
      request_ = std::move(request);
    }
    return true;
  }

  // What the script has changed so far is the request.
  void Commit() {
    std::shared_ptr<const RequestSpec> changed = edit_.Take();
    if (changed == nullptr) return;
    stream_->Replace(std::move(changed));
    stream_->ClearRouteCache();
  }
  const RouteEntry& call() const { return call_; }
  std::shared_ptr<const RequestSpec> TakeRequest() { return std::move(request_); }
  bool sent_asynchronously() const { return !asynchronous_.empty(); }

 private:
  RequestEdit edit_;
  RouteEntry call_;
  std::shared_ptr<const RequestSpec> request_;
  std::vector<std::pair<RouteEntry, std::shared_ptr<const RequestSpec>>> asynchronous_;
};

class LuaReply final : public LuaTurn {
 public:
  LuaReply(HttpStream& stream, ReplyHead& reply) : LuaTurn(stream), reply_(reply) {}

  bool is_request() const override { return false; }
  LuaHeaders Headers() const override {
    LuaHeaders out = {{":status", std::to_string(reply_.code)}};
    ForEachHeader(reply_.headers,
                  [&](std::string_view name, std::string_view value) { out.emplace_back(name, value); });
    return out;
  }
  void Add(const std::string& name, const std::string& value) override {
    if (name != ":status") AddHeaderLine(name, value, &reply_.headers);
  }
  void Replace(const std::string& name, const std::string& value) override {
    if (name == ":status") {
      if (const int code = std::atoi(value.c_str()); code >= 200 && code < 600)
        reply_.code = static_cast<uint16_t>(code);
      return;
    }
    reply_.Remove(name);
    AddHeaderLine(name, value, &reply_.headers);
  }
  void Remove(const std::string& name) override { reply_.Remove(name); }
  std::optional<std::string> Body() const override {
    if (!reply_.has_body) return std::nullopt;
    return reply_.body;
  }
  void SetBody(std::string body) override {
    reply_.has_body = !body.empty();
    reply_.body = std::move(body);
  }
  bool Call(const std::string&, LuaHeaders, const std::string&, int64_t, bool) override { return false; }

 private:
  ReplyHead& reply_;
};

// A request whose script waits for an answer.
struct WaitingScript final : FilterState {
  explicit WaitingScript(HttpStream& first) : stream(first) {}
  LuaRequest stream;
  std::shared_ptr<FilterState> interpreter;
  int thread = 0;
  ~WaitingScript() override {
    if (thread != 0) static_cast<LuaInterpreter&>(*interpreter).vm->Drop(thread);
  }
};

class LuaFilter final : public HttpFilter {
 public:
  LuaFilter(std::shared_ptr<const LuaScript> script, std::map<std::string, std::shared_ptr<const LuaScript>> sources,
            std::string prefix)
      : script_(std::move(script)), sources_(std::move(sources)), prefix_(std::move(prefix)) {}

  FilterStatus OnRequest(HttpStream& stream, Duration lead) const override {
    const LuaScript* const script = ScriptFor(stream);
    if (script == nullptr || !script->on_request) return FilterStatus::kContinue;
    auto waiting = std::make_shared<WaitingScript>(stream);
    waiting->interpreter = InterpreterFor(*script, stream);
    LuaVm& vm = *static_cast<LuaInterpreter&>(*waiting->interpreter).vm;
    const LuaVm::Run run = vm.Start("envoy_on_request", waiting->stream);
    return After(run, std::move(waiting), stream, lead);
  }

  bool sees_replies() const override { return true; }
  void OnReply(HttpStream& stream, ReplyHead& reply) const override {
    const LuaScript* const script = ScriptFor(stream);
    if (script == nullptr || !script->on_reply) return;
    const std::shared_ptr<FilterState> interpreter = InterpreterFor(*script, stream);
    LuaReply in(stream, reply);
    const LuaVm::Run run = static_cast<LuaInterpreter&>(*interpreter).vm->Start("envoy_on_response", in);
    if (run.state == LuaVm::Run::State::kFailed) Failed(stream, run.error);
  }

 private:
  // nullptr: none concerns the request.
  const LuaScript* ScriptFor(const HttpStream& stream) const {
    const auto* const of_route = dynamic_cast<const RouteScript*>(stream.RouteConfig());
    if (of_route == nullptr) return script_.get();
    if (of_route->disabled) return nullptr;
    if (of_route->name.empty()) return of_route->script.get();
    const auto found = sources_.find(of_route->name);
    return found == sources_.end() ? nullptr : found->second.get();
  }

  static std::shared_ptr<FilterState> InterpreterFor(const LuaScript& script, HttpStream& stream) {
    std::shared_ptr<FilterState>& state = stream.State(script.id, /*of_connection=*/false);
    if (state == nullptr) {
      auto made = std::make_shared<LuaInterpreter>();
      made->vm = *LuaVm::Load(script.code);  // it has loaded before
      state = std::move(made);
    }
    return state;
  }

  void Failed(HttpStream& stream, const std::string& error) const {
    ++stream.Counter(prefix_ + "errors");
    stream.ScriptLog("error", "script log: " + error);
  }

  // What a turn of the script came to.
  FilterStatus After(const LuaVm::Run& run, std::shared_ptr<WaitingScript> waiting, HttpStream& stream,
                     Duration lead) const {
    LuaRequest& in = waiting->stream;
    in.Commit();
    if (in.sent_asynchronously()) {
      stream.ScriptLog("warning", "asynchronous httpCall() is not sent in the simulation");
    }
    if (run.state == LuaVm::Run::State::kFailed) {
      Failed(stream, run.error);
    } else if (in.answer()) {
      Answer(*in.answer(), stream, lead);
      return FilterStatus::kStop;
    } else if (run.state == LuaVm::Run::State::kWaits) {
      waiting->thread = run.thread;
      WaitingScript& kept = *waiting;
      stream.Memory() = std::move(waiting);
      stream.Call(kept.stream.call(), kept.stream.TakeRequest(),
                  [this](HttpStream& later, const Reply& reply, Duration ahead) { Answered(later, reply, ahead); });
      return FilterStatus::kStop;
    }
    return FilterStatus::kContinue;
  }

  void Answered(HttpStream& stream, const Reply& reply, Duration lead) const {
    auto waiting = std::static_pointer_cast<WaitingScript>(std::move(stream.Memory()));
    LuaHeaders headers = {{":status", std::to_string(reply.code)}};
    ForEachHeader(reply.headers,
                  [&](std::string_view name, std::string_view value) { headers.emplace_back(name, value); });
    waiting->stream.Return(stream);
    LuaVm& vm = *static_cast<LuaInterpreter&>(*waiting->interpreter).vm;
    const int thread = std::exchange(waiting->thread, 0);
    const LuaVm::Run run = vm.Resume(thread, waiting->stream, headers, std::string(reply.body));
    if (After(run, std::move(waiting), stream, lead) == FilterStatus::kContinue) stream.Continue(lead);
  }

  static void Answer(const std::pair<LuaHeaders, std::string>& answer, HttpStream& stream, Duration lead) {
    LocalReply reply;
    std::string lines;
    for (const auto& [name, value] : answer.first) {
      if (name == ":status") {
        reply.code = static_cast<uint16_t>(std::atoi(value.c_str()));
      } else {
        AddHeaderLine(name, value, &lines);
      }
    }
    reply.details = "lua_response";
    reply.body = stream.Keep(answer.second);
    reply.headers = stream.Keep(lines);
    stream.Answer(reply, lead);
  }

  const std::shared_ptr<const LuaScript> script_;  // nullptr: none but for routes
  const std::map<std::string, std::shared_ptr<const LuaScript>> sources_;
  const std::string prefix_;
};

absl::StatusOr<std::shared_ptr<const HttpFilter>> MakeLuaFilter(const google::protobuf::Any& config,
                                                                const FilterContext& context) {
  LuaProto proto;
  if (absl::Status s = UnpackConfig(config, &proto); !s.ok()) return s;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const std::string& inline_code = proto.inline_code();
#pragma GCC diagnostic pop
  if (proto.has_default_source_code() && !inline_code.empty()) {
    return absl::InvalidArgumentError(
        "Error: Only one of `inline_code` or `default_source_code` can be set for the Lua filter.");
  }
  std::shared_ptr<const LuaScript> script;
  std::map<std::string, std::shared_ptr<const LuaScript>> sources;
  if (proto.has_default_source_code() || !inline_code.empty()) {
    auto made =
        proto.has_default_source_code() ? MakeLuaScript(proto.default_source_code()) : MakeLuaScript(inline_code);
    if (!made.ok()) return made.status();
    script = *std::move(made);
  }
  std::map<std::string, const envoy::config::core::v3::DataSource*> ordered;
  for (const auto& [name, source] : proto.source_codes()) ordered[name] = &source;
  for (const auto& [name, source] : ordered) {
    auto made = MakeLuaScript(*source);
    if (!made.ok()) return made.status();
    sources[name] = *std::move(made);
  }
  std::string prefix = std::string(context.stat_prefix) + "lua.";
  if (!proto.stat_prefix().empty()) prefix += proto.stat_prefix() + ".";
  return std::make_shared<LuaFilter>(std::move(script), std::move(sources), std::move(prefix));
}

absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> MakeLuaForRoute(const google::protobuf::Any& config,
                                                                         const Extensions&) {
  LuaRouteProto proto;
  if (absl::Status s = UnpackConfig(config, &proto); !s.ok()) return s;
  auto out = std::make_shared<RouteScript>();
  out->disabled = proto.disabled();
  out->name = proto.name();
  if (proto.has_source_code()) {
    auto made = MakeLuaScript(proto.source_code());
    if (!made.ok()) return made.status();
    out->script = *std::move(made);
  }
  return out;
}

}  // namespace

HttpFilterType LuaFilterType() {
  HttpFilterType type;
  type.message = "envoy.extensions.filters.http.lua.v3.Lua";
  type.name = "envoy.filters.http.lua";
  type.make = MakeLuaFilter;
  type.route_message = "envoy.extensions.filters.http.lua.v3.LuaPerRoute";
  type.make_for_route = MakeLuaForRoute;
  return type;
}

}  // namespace wavetank::envoysim
