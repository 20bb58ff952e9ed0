// A transport without sockets: onto the REST handler of a simulated API server, with what may go wrong on the way.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/host.h"
#include "fakes/kube/http/message/line_stream.h"
#include "fakes/kube/http/rest/rest.h"
#include "record/recording.h"
#include "record/transport.h"

namespace wavetank::record {

// The API serves no custom resource without its definition.
inline void DefineIstio(fakekube::ApiServer& api) {
  for (const Recording::Source& source : Recording::Sources({})) {
    const kube::ResourceKind& kind = source.kind;
    if (!kind.group.ends_with(".istio.io")) continue;
    const std::string resource(kind.resource), group(kind.group), version(kind.version);
    nlohmann::json names = {{"plural", resource}, {"kind", std::string(kind.kind)}, {"singular", ""}};
    nlohmann::json served = {{"name", version}, {"served", true}, {"storage", true}};
    api.Apply({{"apiVersion", "apiextensions.k8s.io/v1"},
               {"kind", "CustomResourceDefinition"},
               {"metadata", {{"name", resource + "." + group}}},
               {"spec",
                {{"group", group},
                 {"scope", "Namespaced"},
                 {"names", std::move(names)},
                 {"versions", nlohmann::json::array({std::move(served)})}}}})
        .IgnoreError();
  }
}

class FakeTransport final : public Transport {
 public:
  FakeTransport(Host& host, fakekube::ApiServer& server) : host_(host), rest_(server, {}) {}
  // The streams end before the server does, whoever still knows their states.
  ~FakeTransport() override {
    for (const std::weak_ptr<State>& known : states_) {
      if (const std::shared_ptr<State> state = known.lock()) state->watch = nullptr;
    }
  }

  struct Canned {
    int code = 200;
    std::string body;
    bool ends = true;
  };
  // What it gives is answered instead of the API's own answer.
  std::function<std::optional<Canned>(const std::string& target)> instead;
  bool down = false;  // nobody answers
  std::vector<std::string> asked;

  void BreakWatches() {
    for (const std::shared_ptr<State>& state : std::set(open_)) {
      End(state, absl::UnavailableError("connection reset by peer"));
    }
  }
  // To everybody who watches something whose target has `part` in it.
  void Inject(const std::string& part, const std::string& bytes) {
    for (const std::shared_ptr<State>& state : std::set(open_)) {
      if (state->alive && state->target.find(part) != std::string::npos) state->callbacks.on_data(bytes);
    }
  }
  size_t watches() const { return open_.size(); }

  std::unique_ptr<Call> Get(const std::string& target, bool, Callbacks callbacks) override {
    asked.push_back(target);
    auto state = std::make_shared<State>();
    states_.push_back(state);
    state->target = target;
    state->callbacks = std::move(callbacks);
    host_.RunAfter(1ms, [this, state] { Answer(state); });
    return std::make_unique<Handle>(*this, state);
  }

 private:
  struct State {
    std::string target;
    Callbacks callbacks;
    std::unique_ptr<fakekube::http::LineStream> watch;
    bool alive = true;
  };
  class Handle final : public Call {
   public:
    Handle(FakeTransport& transport, std::shared_ptr<State> state) : transport_(transport), state_(std::move(state)) {}
    ~Handle() override { transport_.Close(state_); }

   private:
    FakeTransport& transport_;
    std::shared_ptr<State> state_;
  };

  void Close(const std::shared_ptr<State>& state) {
    state->alive = false;
    open_.erase(state);
    // The stream may be what is calling.
    host_.Post([state] { state->watch = nullptr; });
  }
  void End(const std::shared_ptr<State>& state, const absl::Status& status) {
    if (!state->alive) return;
    Close(state);
    state->callbacks.on_end(status);
  }
  void Answer(const std::shared_ptr<State>& state) {
    if (!state->alive) return;
    if (down) return End(state, absl::UnavailableError("connection refused"));
    if (instead) {
      if (const std::optional<Canned> canned = instead(state->target)) {
        state->callbacks.on_code(canned->code);
        if (state->alive && !canned->body.empty()) state->callbacks.on_data(canned->body);
        if (canned->ends) return End(state, absl::OkStatus());
        if (state->alive) open_.insert(state);
        return;
      }
    }
    fakekube::http::Request request;
    request.method = "GET";
    const size_t mark = state->target.find('?');
    request.path = state->target.substr(0, mark);
    if (mark != std::string::npos) request.query = state->target.substr(mark + 1);
    request.accept = "application/json";
    fakekube::http::Response response = rest_.Handle(request);
    if (response.hang_up) return End(state, absl::UnavailableError("hung up"));
    state->callbacks.on_code(response.code);
    if (!state->alive) return;
    if (response.watch == nullptr) {
      // In small pieces, as they come.
      const std::string text = response.Text();
      for (size_t at = 0; at < text.size() && state->alive; at += 1000) {
        state->callbacks.on_data(std::string_view(text).substr(at, 1000));
      }
      return End(state, absl::OkStatus());
    }
    state->watch = std::move(response.watch);
    open_.insert(state);
    // The stream is the state's own.
    const std::weak_ptr<State> weak = state;
    state->watch->Start(
        [weak](const fakekube::http::Line& line) {
          const std::shared_ptr<State> open = weak.lock();
          if (open == nullptr) return;
          // Cut where no event ends.
          const size_t half = line->size() / 2;
          if (open->alive) open->callbacks.on_data(std::string_view(*line).substr(0, half));
          if (open->alive) open->callbacks.on_data(std::string_view(*line).substr(half));
        },
        [this, weak] {
          host_.Post([this, weak] {
            if (const std::shared_ptr<State> open = weak.lock()) End(open, absl::OkStatus());
          });
        });
  }

  Host& host_;
  fakekube::http::RestApi rest_;
  std::set<std::shared_ptr<State>> open_;
  std::vector<std::weak_ptr<State>> states_;
};

}  // namespace wavetank::record
