#include "serve/pods/pod_commands.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "fakes/kube/http/rest/rest.h"
#include "fmt/format.h"
#include "sim/inputs/kinds/traffic.h"
#include "sim/pod_process.h"
#include "sim/traffic.h"
#include "sim/world.h"

namespace wavetank::serve {
namespace {

namespace http = fakekube::http;

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// What a simulated application answers: as Istio's helloworld sample does, with its pod's name. An Envoy's own reply
// brings its body.
std::string BodyOf(const sim::TrafficRecord& record) {
  if (!record.record.body.empty()) return std::string(record.record.body);
  if (record.server == nullptr || record.record.code != 200) return "";
  return fmt::format("Hello version: {}, instance: {}\n", record.server->version, record.server->name);
}

CommandResult Environment(const sim::PodProcess& pod, const std::vector<std::string>& argv) {
  CommandResult out;
  bool found = argv.size() < 2;
  for (const nlohmann::json& container : Items(At(pod.pod()->body, {"spec", "containers"}))) {
    for (const nlohmann::json& variable : Items(At(container, "env"))) {
      const std::string name = Text(variable, "name");
      if (!At(variable, "value").is_string()) continue;
      if (argv.size() < 2) out.out += name + "=" + Text(variable, "value") + "\n";
      if (argv.size() > 1 && name == argv[1]) {
        out.out = Text(variable, "value") + "\n";
        found = true;
      }
    }
  }
  out.exit_code = found ? 0 : 1;
  return out;
}

// The sockets that listen, in the words of `netstat -natp`: a simulated Envoy's own, and its agent's.
std::string Netstat(const sim::PodProcess& pod) {
  std::string out =
      "Active Internet connections (servers and established)\n"
      "Proto Recv-Q Send-Q Local Address           Foreign Address         State       PID/Program name    \n";
  if (!pod.bootstrap().has_value()) return out;
  const auto listens = [&](std::string_view address, std::string_view program) {
    out += fmt::format("tcp        0      0 {:<23} {:<23} {:<11} {:<20}\n", address, "0.0.0.0:*", "LISTEN", program);
  };
  listens("127.0.0.1:15000", "-");
  for (const char* address : {"0.0.0.0:15021", "0.0.0.0:15090"}) listens(address, "-");
  listens("0.0.0.0:15020", "1/pilot-agent");
  return out;
}

// As `date` prints it, of the world's own calendar.
std::string DateOf(int64_t unix_seconds) {
  const time_t seconds = unix_seconds;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text;
  const size_t size = std::strftime(text.data(), text.size(), "%a %b %e %H:%M:%S UTC %Y\n", &parts);
  return {text.data(), size};
}

CommandResult NotFound(const std::string& command) {
  CommandResult out;
  out.exit_code = 126;
  out.failure = fmt::format(
      "OCI runtime exec failed: exec failed: unable to start container process: exec: \"{}\": executable file not "
      "found in $PATH: unknown (simulated pods have curl, pilot-agent request, pilot-discovery request, echo, "
      "date, hostname, "
      "printenv, netstat, find, ls, sleep, true, false, sh)",
      command);
  return out;
}

}  // namespace

PodCommands::PodCommands(Loop& loop, const HeldConfig& held) : loop_(loop), held_(held) {
  sim::World& world = loop.world();
  requests_ = world.commons().on_request.Add([this](const sim::TrafficRecord& record) {
    const auto it = waiting_.find(record.spec.id);
    if (it == waiting_.end()) return;
    CurlAnswer answer;
    answer.code = record.record.code;
    answer.body = BodyOf(record);
    answer.why = record.record.details;
    answer.closer = record.record.server_details;
    answer.headers = record.record.headers;
    answer.seconds = ToMillis(record.done - record.sent) / 1000;
    const auto tell = std::move(it->second);
    waiting_.erase(it);
    tell(answer);
  });
}

void PodCommands::Run(sim::World& world, const PodPort& where, const std::vector<std::string>& argv, Done done) {
  const sim::PodProcess* const pod = world.FindPod(where.pod + "." + where.ns + "@" + where.cluster);
  if (pod == nullptr || argv.empty()) return done(NotFound(argv.empty() ? "" : argv[0]));
  const std::string_view command = BaseName(argv[0]);
  CommandResult out;
  if (command == "curl") {
    const absl::StatusOr<CurlCall> call = ReadCurl(argv);
    if (call.ok()) return Curl(world, where, *call, std::move(done));
    out.exit_code = 2;
    out.err = std::string(call.status().message());
  } else if ((command == "pilot-agent" || command == "pilot-discovery") && argv.size() > 3 && argv[1] == "request") {
    out = Request(world, where, argv);
  } else if (command == "pilot-discovery" && argv.size() > 1 && argv[1] == "version") {
    out.out = fmt::format(
        "version.BuildInfo{{Version:\"{0}\", GitRevision:\"simulated\", GolangVersion:\"none\", "
        "BuildStatus:\"Clean\", GitTag:\"{0}\"}}",
        world.profile().istio);
  } else if (command == "netstat") {
    out.out = Netstat(*pod);
  } else if (command == "find" && argv.size() > 1) {
    // Simulated containers have no files: nothing is found, as where no core was dumped.
    out.exit_code = 0;
  } else if (command == "ls") {
    out.exit_code = 0;  // no files, as above
  } else if (command == "sleep" && argv.size() == 2) {
    double seconds = 0;
    constexpr double kDay = 86'400;
    if (absl::SimpleAtod(argv[1], &seconds) && seconds >= 0 && seconds <= kDay) {
      loop_.PostAfter(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)),
                      [done = std::move(done)](sim::World&) { done(CommandResult()); });
      return;
    }
    out.exit_code = 1;
    out.err = fmt::format("sleep: invalid number '{}'\n", argv[1]);
  } else if (command == "true") {
    out.exit_code = 0;
  } else if (command == "false") {
    out.exit_code = 1;
  } else if (command == "echo") {
    out.out = absl::StrJoin(argv.begin() + 1, argv.end(), " ") + "\n";
  } else if (command == "date") {
    out.out = DateOf(world.KubeApi(where.cluster)->server().UnixNow());
  } else if (command == "hostname") {
    out.out = where.pod + "\n";
  } else if (command == "printenv" || command == "env") {
    out = Environment(*pod, argv);
  } else if ((command == "sh" || command == "bash") && argv.size() == 3 && argv[1] == "-c") {
    auto all = std::make_shared<CommandResult>();
    OpenShell(where)->Run(
        argv[2],
        [all](const CommandResult& one) {
          all->out += one.out;
          all->err += one.err;
        },
        [all, done = std::move(done)](int code, bool) {
          all->exit_code = code;
          done(*all);
        });
    return;
  } else {
    out = NotFound(argv[0]);
  }
  done(std::move(out));
}

std::shared_ptr<Shell> PodCommands::OpenShell(const PodPort& where) {
  return std::make_shared<Shell>([this, where](const std::vector<std::string>& argv, Shell::Done done) {
    Run(loop_.world(), where, argv, std::move(done));
  });
}

void PodCommands::Curl(sim::World& world, const PodPort& where, const CurlCall& call, Done done) {
  sim::inputs::StartTraffic traffic;
  traffic.id = fmt::format("exec-{}", world.inputs());
  traffic.flow = "exec";
  traffic.cluster = where.cluster;
  traffic.ns = where.ns;
  traffic.app = world.FindPod(where.pod + "." + where.ns + "@" + where.cluster)->app();
  traffic.pod = where.pod;
  traffic.host = call.host;
  traffic.port = call.port;
  traffic.path = call.path;
  traffic.method = call.method;
  traffic.headers = call.headers;
  traffic.body_bytes = call.body_bytes;
  if (call.tls) {
    traffic.tls.emplace();
    traffic.tls->insecure = call.insecure;
    if (!IsIpAddress(call.host)) traffic.tls->server_name = call.host;
  }
  if (!call.connect_to.empty()) {
    traffic.host = call.connect_to;
    const bool usual = call.port == (call.tls ? 443 : 80);
    traffic.headers.try_emplace("host", usual ? call.host : fmt::format("{}:{}", call.host, call.port));
  }
  traffic.protocol = call.protocol;
  traffic.timeout = call.max_time;
  traffic.requests = 1;
  waiting_[traffic.id] = [call, done](const CurlAnswer& answer) { done(CurlResult(call, answer)); };
  if (const absl::Status status = world.Do(traffic); !status.ok()) {
    waiting_.erase(traffic.id);
    CommandResult out;
    out.exit_code = 2;
    out.err = fmt::format("curl: {}\n", std::string_view(status.message().data(), status.message().size()));
    done(std::move(out));
  }
}

// "pilot-agent request GET config_dump", "pilot-agent request --debug-port 15004 GET /debug/syncz",
// "pilot-discovery request GET /debug/syncz" (istiod: pilot/cmd/pilot-agent/app/request.go).
CommandResult PodCommands::Request(const sim::World& world, PodPort where, std::vector<std::string> argv) const {
  CommandResult out;
  where.port = BaseName(argv[0]) == "pilot-agent" ? 15000 : 8080;
  constexpr std::string_view kPort = "--debug-port";
  for (size_t i = 2; BaseName(argv[0]) == "pilot-agent" && i < argv.size(); ++i) {
    if (!argv[i].starts_with(kPort)) continue;
    const bool apart = argv[i] == kPort && i + 1 < argv.size();
    const std::string text = apart ? argv[i + 1] : argv[i].substr(std::min(kPort.size() + 1, argv[i].size()));
    int port = 0;
    const bool allowed =
        absl::SimpleAtoi(text, &port) && (port == 15000 || port == 15004 || port == 15020 || port == 15021);
    if (!allowed) {
      out.exit_code = 1;
      out.err = fmt::format("Error: debug port {} is not in allowed list 15000, 15004, 15020, 15021\n", text);
      return out;
    }
    where.port = static_cast<uint16_t>(port);
    const auto at = argv.begin() + static_cast<std::ptrdiff_t>(i);
    argv.erase(at, at + (apart ? 2 : 1));
    break;
  }
  if (argv.size() < 4) {
    out.exit_code = 1;
    out.err = fmt::format("Error: requires at least 2 arg(s), only received {}\n", argv.size() - 2);
    return out;
  }
  http::Request request;
  request.method = argv[2];
  std::string target = argv[3];
  if (!target.starts_with('/')) target.insert(0, "/");
  request.path = target.substr(0, target.find('?'));
  if (target.find('?') != std::string::npos) request.query = target.substr(target.find('?') + 1);
  std::optional<http::Response> answer = AnswerInPod(world, held_, where, request, metrics_);
  if (!answer.has_value()) {
    out.exit_code = 1;
    out.err = fmt::format("Error: Get \"http://localhost:{}{}\": connect: connection refused\n", where.port, target);
    return out;
  }
  out.out = answer->Text();
  if (answer->code != 200) {
    out.exit_code = 1;
    out.err = fmt::format("Error: received unsuccessful status code {}: {}\n", answer->code, out.out);
    out.out.clear();
  }
  return out;
}

}  // namespace wavetank::serve
