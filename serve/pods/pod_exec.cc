#include "serve/pods/pod_exec.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "serve/pods/query_values.h"
#include "serve/pods/stream_tunnel.h"

namespace wavetank::serve {
namespace {

namespace http = fakekube::http;

constexpr const char* kPrompt = "$ ";

// How a command ended, as the error stream of v4 tells it.
std::string StatusText(const CommandResult& result) {
  nlohmann::ordered_json status{{"metadata", nlohmann::ordered_json::object()}};
  if (!result.failure.empty()) {
    status["status"] = "Failure";
    status["message"] = result.failure;
    status["reason"] = "InternalError";
    status["code"] = 500;
  } else if (result.exit_code == 0) {
    status["status"] = "Success";
  } else {
    status["status"] = "Failure";
    status["reason"] = "NonZeroExitCode";
    status["message"] = fmt::format("command terminated with non-zero exit code: error executing command, exit code {}",
                                    result.exit_code);
    status["details"]["causes"] =
        nlohmann::ordered_json::array({{{"reason", "ExitCode"}, {"message", std::to_string(result.exit_code)}}});
  }
  return JsonText(status);
}

// A shell without anything to run runs what it is sent.
bool IsShell(const std::vector<std::string>& argv) {
  if (argv.empty() || argv.size() > 2 || (argv.size() == 2 && argv[1] != "-i")) return false;
  const std::string name = argv[0].substr(argv[0].rfind('/') + 1);
  return name == "sh" || name == "bash";
}

// What the server's thread hears of the streams; what is done with it, on the loop's.
class ExecOwner final : public StreamOwner, public std::enable_shared_from_this<ExecOwner> {
 public:
  ExecOwner(Loop& loop, std::shared_ptr<PodCommands> commands, PodPort where, const std::string& query,
            bool json_status)
      : loop_(loop),
        commands_(std::move(commands)),
        where_(std::move(where)),
        argv_(QueryValues(query, "command")),
        terminal_(QueryFlag(query, "tty")),
        json_status_(json_status),
        typed_(terminal_) {
    for (const char* stream : {"stdin", "stdout", "stderr"}) {
      if (QueryFlag(query, stream)) ++missing_;
    }
    ++missing_;  // error
    // A terminal takes both.
    if (terminal_ && QueryFlag(query, "stderr")) --missing_;
  }
  void OnOpen(std::weak_ptr<Streams> streams) override { streams_ = std::move(streams); }
  void OnStream(uint32_t stream, const StreamHeaders& headers) override {
    const auto type = headers.find("streamtype");
    if (type == headers.end()) return;
    if (type->second == "resize") return;
    by_type_[type->second] = stream;
    if (type->second == "stdin") stdin_ = stream;
    if (--missing_ == 0) Run();
  }
  // Of the commands only a shell reads its input.
  void OnData(uint32_t stream, std::string_view bytes) override {
    if (stream != stdin_) return;
    loop_.Post([self = shared_from_this(), text = std::string(bytes)](sim::World&) {
      self->Say("stdout", self->typed_.Feed(text));
      if (self->typed_.too_much()) return self->Refuse();
      self->Next();
    });
  }
  void OnEnd(uint32_t stream) override {
    if (stream != stdin_) return;
    loop_.Post([self = shared_from_this()](sim::World&) {
      self->typed_.End();
      self->Next();
    });
  }
  void OnClosed() override {
    loop_.Post([self = shared_from_this()](sim::World&) { self->shell_ = nullptr; });
  }

 private:
  void Run() {
    loop_.Post([self = shared_from_this()](sim::World& world) {
      if (IsShell(self->argv_)) return self->Open();
      self->commands_->Run(world, self->where_, self->argv_, [self](const CommandResult& result) {
        self->WhenDurable([self, result](bool logged) { self->Tell(logged ? result : Unwritten()); });
      });
    });
  }
  static CommandResult Unwritten() {
    CommandResult out;
    out.failure = "the event log of this run cannot be written";
    return out;
  }
  void WhenDurable(std::function<void(bool logged)> fn) {
    loop_.WhenDurable([fn = std::move(fn)](const absl::Status& logged) { fn(logged.ok()); });
  }

  // --- a shell that is typed into

  void Open() {
    shell_ = commands_->OpenShell(where_);
    if (!stdin_) typed_.End();
    if (terminal_) Say("stdout", kPrompt);
    Next();
  }
  void Refuse() {
    if (shell_ == nullptr) return;
    Say(terminal_ ? "stdout" : "stderr",
        fmt::format("sh: too much input: {} bytes may wait for what runs; send it in parts\n", kMaxTypedAhead));
    Exit(2);
  }
  // The lines that are there, unless one is under way.
  void Next() {
    if (going_) return;  // one that ended at once: the loop below goes on
    going_ = true;
    while (shell_ != nullptr && !busy_ && !typed_.lines.empty()) RunLine();
    going_ = false;
    if (shell_ != nullptr && !busy_ && typed_.ended) Exit(code_);
  }
  void RunLine() {
    const std::string line = typed_.Take();
    busy_ = true;
    shell_->Run(
        line,
        [self = shared_from_this()](const CommandResult& result) {
          self->WhenDurable([self, result](bool logged) {
            self->Say("stdout", logged ? result.out : "");
            self->Say(self->terminal_ ? "stdout" : "stderr", logged ? result.err : Unwritten().failure);
          });
        },
        [self = shared_from_this()](int code, bool exited) {
          self->WhenDurable([self, code, exited](bool) {
            self->busy_ = false;
            self->code_ = code;
            if (exited) return self->Exit(code);
            if (self->terminal_) self->Say("stdout", kPrompt);
            self->Next();
          });
        });
  }
  void Exit(int code) {
    if (shell_ == nullptr) return;
    shell_ = nullptr;
    CommandResult result;
    result.exit_code = code;
    Tell(result);
  }

  // --- what the client is told

  void Say(const char* type, const std::string& text) {
    const std::shared_ptr<Streams> streams = streams_.lock();
    const auto it = by_type_.find(type);
    if (streams == nullptr || it == by_type_.end() || text.empty()) return;
    // Echoes have their carriage returns.
    const bool plain = !terminal_ || text.find('\r') != std::string::npos;
    streams->Data(it->second, plain ? text : absl::StrReplaceAll(text, {{"\n", "\r\n"}}));
  }
  void Tell(const CommandResult& result) {
    const std::shared_ptr<Streams> streams = streams_.lock();
    if (streams == nullptr) return;
    const bool apart = by_type_.contains("stderr");
    const bool good = result.exit_code == 0 && result.failure.empty();
    Say("stdout", apart ? result.out : result.out + result.err);
    Say("stderr", result.err);
    Say("error", json_status_ ? StatusText(result) : good ? "" : result.failure + " ");
    for (const char* type : {"stdout", "stderr", "error"}) {
      if (const auto it = by_type_.find(type); it != by_type_.end()) streams->End(it->second);
    }
    streams->Close();
  }

  Loop& loop_;
  const std::shared_ptr<PodCommands> commands_;
  const PodPort where_;
  const std::vector<std::string> argv_;
  const bool terminal_, json_status_;
  // Written by the server's thread until all streams are there; then they stay.
  int missing_ = 0;
  std::weak_ptr<Streams> streams_;
  std::map<std::string, uint32_t> by_type_;
  std::optional<uint32_t> stdin_;
  // Of the loop's thread.
  TypedLines typed_;
  std::shared_ptr<Shell> shell_;  // null: none, or it has ended
  bool busy_ = false, going_ = false;
  int code_ = 0;
};

}  // namespace

http::Response ExecInPod(Loop& loop, std::shared_ptr<PodCommands> commands, const PodPort& where,
                         const http::Request& request) {
  TunnelOffer offer;
  offer.spdy_protocols = {"v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"};
  offer.websocket_protocols = {"v5.channel.k8s.io", "v4.channel.k8s.io"};
  const auto channel = [&](const char* type, bool there) {
    offer.channels.push_back(there ? StreamHeaders{{"streamtype", type}} : StreamHeaders{});
  };
  channel("stdin", QueryFlag(request.query, "stdin"));
  channel("stdout", QueryFlag(request.query, "stdout"));
  channel("stderr", QueryFlag(request.query, "stderr") && !QueryFlag(request.query, "tty"));
  channel("error", true);
  channel("resize", QueryFlag(request.query, "tty"));
  return UpgradeTo(request, offer, [&](const std::string& protocol) {
    const bool json = protocol == "v4.channel.k8s.io" || protocol == "v5.channel.k8s.io";
    return std::make_shared<ExecOwner>(loop, std::move(commands), where, request.query, json);
  });
}

}  // namespace wavetank::serve
