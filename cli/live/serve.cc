#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <set>
#include <tuple>

#include "capacity/metrics/istiod_metrics.h"
#include "cli/mesh_arguments.h"
#include "cli/read_file.h"
#include "cli/verb.h"
#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/text/file_name.h"
#include "core/kube/credentials/sealing.h"
#include "core/x509/x509.h"
#include "fakes/envoy/proxy/data_plane.h"
#include "fmt/format.h"
#include "replay/kept_secrets.h"
#include "reports/violations.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/results/nacks.h"
#include "scenarios/runner/start.h"
#include "scenarios/survey/mesh_survey.h"
#include "serve/manifest_watch.h"
#include "serve/player.h"
#include "serve/pods/pod_folder.h"
#include "serve/server.h"
#include "sim/invariants/catalogue.h"

namespace wavetank::cli {
namespace {

namespace fs = std::filesystem;

struct ServeArguments {
  MeshArguments mesh;
  std::string durability = "acknowledged", profile = "istio", log, bootstrap, bootstraps, pod_folders, envoy, advertise,
              secret_ttl;
  std::string first_request = "30s", idle = "0s";
  std::vector<std::string> timing;
  std::optional<uint64_t> seed;
  serve::ServerOptions server;
  std::string invariants, mend;
  std::string kube_token_file, kube_client_ca, kubeconfig;
  bool json = false, modelled_costs = false, delta = false, no_remote_secrets = false;
  bool play = false, no_watch = false, grpc = false, keep_secrets = false;
  std::vector<std::string> control_plane_env;
};

// SIGINT and SIGTERM, waited for instead of handled. To be made before any thread, which inherits it.
class EndSignal {
 public:
  EndSignal() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    signal(SIGPIPE, SIG_IGN);
  }
  void Await() {
    int number = 0;
    while (sigwait(&signals_, &number) != 0) {
    }
  }

 private:
  sigset_t signals_;
};

bool UpstreamEnvoy(const ServeArguments& a) { return a.profile.find("upstream-envoy") != std::string::npos; }

absl::StatusOr<serve::SessionOptions> Plan(const ServeArguments& a) {
  serve::SessionOptions out;
  sim::Mending mending;
  std::optional<Time> present;  // the calendar's
  if (absl::Status status = TakeMending(a.mend, "", &mending, &present); !status.ok()) return status;
  if (a.mesh.folders.size() == 1 && a.mesh.clusters.empty() && LooksLikeScenario(a.mesh.folders[0])) {
    const std::string& path = a.mesh.folders[0];
    if (absl::Status status = a.mesh.CheckBeside(path, true); !status.ok()) return status;
    if (a.no_remote_secrets)
      return absl::InvalidArgumentError(
          fmt::format("--no-remote-secrets is of manifests; {} says its own, as `remoteSecrets:`", path));
    absl::StatusOr<scenario::Scenario> scenario = scenario::LoadScenario(path);
    if (!scenario.ok()) return scenario.status();
    if (mending.chosen()) scenario->mending = mending;
    absl::StatusOr<scenario::StartPhases> start = scenario::MakeStart(*scenario);
    if (!start.ok()) return start.status();
    out.scenario = *std::move(scenario);
    out.start = *std::move(start);
  } else {
    if (a.play) return absl::InvalidArgumentError("--play: manifests have no steps; name a scenario");
    scenario::SurveyOptions survey;
    survey.remote_secrets = !a.no_remote_secrets;
    survey.mending = mending;
    survey.calendar = true;
    absl::StatusOr<std::vector<scenario::SurveyCluster>> clusters = a.mesh.Clusters();
    if (!clusters.ok()) return clusters.status();
    survey.clusters = *std::move(clusters);
    absl::StatusOr<scenario::MeshPlan> plan = scenario::PlanMesh(survey);
    if (!plan.ok()) return plan.status();
    out.scenario = std::move(plan->scenario);
    out.scenario.name = out.scenario.file = "serve";
    out.start = std::move(plan->start);
  }
  if (a.profile == "upstream-envoy") {
    out.scenario.profile = "istio-1.18+upstream-envoy";
  } else if (a.profile != "istio") {
    out.scenario.profile = a.profile;
  }
  if (a.seed) out.scenario.seed = *a.seed;
  for (const std::string& text : a.timing) {
    const auto pair = SplitPair(text, "--timing");
    if (!pair.ok()) return pair.status();
    out.timing[pair->first] = pair->second;
  }
  out.modelled_costs = a.modelled_costs;
  out.keep_configuration = !a.server.kube.listen.empty();
  out.log = a.log;
  if (a.keep_secrets && a.log.empty()) {
    return absl::InvalidArgumentError("--keep-secrets is about the event log: give -o FILE");
  }
  out.keep_secrets = a.keep_secrets;
  if (!a.invariants.empty()) {
    absl::StatusOr<std::vector<std::string>> names = sim::ParseInvariants(a.invariants);
    if (!names.ok()) return names.status();
    out.invariants = *std::move(names);
  }
  static const std::map<std::string, serve::Durability> kNames = {{"session", serve::Durability::kSession},
                                                                  {"second", serve::Durability::kSecond},
                                                                  {"acknowledged", serve::Durability::kAcknowledged}};
  out.durability = kNames.at(a.durability);  // the option's check knows the same names
  out.real_istiod = !a.server.control_plane.program.empty();
  return out;
}

// Where an Envoy is told to find the server: the host that is advertised, with the listener's port.
std::string Advertised(const ServeArguments& a, const std::string& listener) {
  const size_t colon = listener.rfind(':');
  std::string host = a.advertise.empty() ? listener.substr(0, colon) : a.advertise;
  if (host == "0.0.0.0" || host == "[::]") host = "127.0.0.1";
  return host + listener.substr(colon);
}

// `ads`: of a real istiod; empty: where our own server is.
serve::BootstrapOptions BootstrapFor(const ServeArguments& a, const serve::GrpcListeners& where,
                                     const std::string& ads = {}) {
  serve::BootstrapOptions out;
  out.upstream_envoy = UpstreamEnvoy(a);
  out.delta = a.delta;
  out.grpc = a.grpc;
  // Istio's own Envoys go through their agent's sockets.
  if (!out.upstream_envoy && !out.grpc) return out;
  out.xds = where.plaintext.empty() ? "unix:" + where.unix_socket : Advertised(a, where.plaintext);
  out.sds = where.unix_socket.empty() ? out.xds : "unix:" + fs::absolute(where.unix_socket).string();
  if (!ads.empty()) out.xds = Advertised(a, ads);
  return out;
}

absl::Status WriteBootstraps(const ServeArguments& a, serve::Server& server) {
  std::error_code error;
  fs::create_directories(a.bootstraps, error);
  const auto all = server.loop().Call([&](sim::World& world) {
    std::map<std::string, absl::StatusOr<nlohmann::ordered_json>> out;
    for (const std::string& pod : serve::ProxiedPods(world)) {
      const serve::GrpcListeners* where = server.ListenersOf(world.FindPod(pod)->site().name);
      if (where == nullptr) continue;
      std::string ads;
      if (server.control_planes() != nullptr) ads = server.control_planes()->Of(where->cluster)->address();
      out.emplace(pod, serve::BootstrapOf(world, pod, BootstrapFor(a, *where, ads)));
    }
    return out;
  });
  for (const auto& [pod, bootstrap] : *all) {
    if (!bootstrap.ok()) return bootstrap.status();
    const fs::path path = fs::path(a.bootstraps) / (FileName(pod) + ".json");
    std::ofstream file(path);
    file << JsonText(*bootstrap, 1) << "\n";
    if (!file.flush()) return absl::UnavailableError(fmt::format("{}: cannot be written", path.string()));
  }
  return absl::OkStatus();
}

// A folder for each pod with a proxy, for `wavetank agent` or for pilot-agent itself.
absl::Status WritePodFolders(const ServeArguments& a, serve::Server& server) {
  const auto all = server.loop().Call([&](sim::World& world) {
    std::map<std::string, absl::StatusOr<std::map<std::string, std::string>>> out;
    for (const std::string& pod : serve::ProxiedPods(world)) {
      const serve::GrpcListeners* where = server.ListenersOf(world.FindPod(pod)->site().name);
      if (where == nullptr || where->secure.empty()) continue;
      out.emplace(pod, serve::PodFolder(world, pod, Advertised(a, where->secure), a.envoy));
    }
    return out;
  });
  if (all->empty()) return absl::InvalidArgumentError("--pod-folders needs --secure-listen");
  for (const auto& [pod, files] : *all) {
    if (!files.ok()) return files.status();
    const absl::Status written = serve::WritePodFolder((fs::path(a.pod_folders) / FileName(pod)).string(), *files);
    if (!written.ok()) return written;
  }
  return absl::OkStatus();
}

// Only its owner may read it: it may hold a token.
absl::Status WriteKubeconfig(const ServeArguments& a, const serve::KubeFrontend& kube) {
  const std::string text = serve::RenderKubeconfig(kube.where(), a.server.kube.token, kube.ca_pem(), kube.admin());
  const int fd = open(a.kubeconfig.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written =
      fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool closed = fd < 0 || close(fd) == 0;
  if (written && closed) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("{}: cannot be written: {}", a.kubeconfig, strerror(errno)));
}

// Refusals of simulated Envoys and of real ones, each once; those from before with them.
void TellNacks(serve::Loop& loop, std::function<void(const std::string&)> report) {
  struct Told {
    std::function<void(const std::string&)> report;
    std::set<std::pair<std::string, std::string>> known;  // proxy, text
  };
  auto told = std::make_shared<Told>(Told{std::move(report), {}});
  const auto posted = loop.Call([told](sim::World& world) {
    for (const scenario::Nack& nack : scenario::NackTally(world).All()) told->report("NACK: " + Describe(nack));
    for (const auto& without : scenario::WithoutEffectOf(world)) told->report("note: " + Describe(without));
    for (const auto& nack : world.data_plane().nacks()) told->known.emplace(nack.proxy, nack.text);
    world.kernel().AddObserver([told, &world](const sim::TraceEvent& event) {
      if (event.record.kind != TraceKind::kXdsNack) return;
      std::string proxy(world.kernel().names().Text(event.record.subject));
      std::string text(event.record.detail);
      if (!told->known.emplace(proxy, text).second) return;
      told->report(fmt::format("NACK: {} refused {}: {}", proxy, world.kernel().names().Text(event.record.object),
                               kube::SealedText(text)));
    });
    return 0;
  });
  (void)posted;
}

// What whoever drives the server needs to know, as one line of JSON or as a table.
void Announce(const ServeArguments& a, serve::Server& server) {
  if (a.json) {
    nlohmann::ordered_json out = {{"listeners", nlohmann::ordered_json::array()},
                                  {"kube", nlohmann::ordered_json::array()}};
    if (server.kube() != nullptr) {
      for (const serve::KubeListener& where : server.kube()->where())
        out["kube"].push_back({{"cluster", where.cluster}, {"server", where.server}});
    }
    for (const auto& grpc : server.grpc()) {
      const serve::GrpcListeners& where = grpc->where();
      out["listeners"].push_back({{"cluster", where.cluster},
                                  {"plaintext", where.plaintext},
                                  {"secure", where.secure},
                                  {"unix", where.unix_socket}});
      if (server.control_planes() == nullptr) continue;
      // ADS is the real istiod's; what our own server still gives are secrets.
      nlohmann::ordered_json& listener = out["listeners"].back();
      const serve::PilotDiscovery& istiod = *server.control_planes()->Of(where.cluster);
      listener["secrets"] = where.plaintext;
      listener["plaintext"] = istiod.address();
      listener["pid"] = istiod.pid();
      listener["log"] = istiod.options().log;
    }
    if (server.debug() != nullptr) {
      for (const serve::DebugListener& where : server.debug()->where())
        out["debug"].push_back({{"cluster", where.cluster}, {"address", where.address}});
    }
    out["pods"] = *server.loop().Call([](sim::World& world) {
      nlohmann::ordered_json pods = nlohmann::ordered_json::array();
      for (const sim::PodProcess* pod : world.Pods()) {
        const nlohmann::json& body = pod->pod()->body;
        pods.push_back({{"name", pod->name()},
                        {"cluster", pod->site().name},
                        {"network", pod->site().network_name},
                        {"ip", body.value("status", nlohmann::json::object()).value("podIP", "")},
                        {"app", pod->app()},
                        {"proxy", pilot::HasProxy(body)}});
      }
      return pods;
    });
    if (a.keep_secrets) out["keepsSecrets"] = true;
    std::cout << JsonText(out) << std::endl;
    return;
  }
  for (const std::string& note : server.session().notes()) std::cout << "note: " << note << "\n";
  if (a.keep_secrets) std::cout << "note: " << replay::KeptSecretsNote(a.log) << "\n";
  std::vector<std::vector<std::string>> rows;
  if (server.control_planes() != nullptr) {
    rows = {{"CLUSTER", "REAL ISTIOD", "PID", "LOG"}};
    for (const serve::ControlPlanes::Where& istiod : server.control_planes()->where())
      rows.push_back({istiod.cluster, istiod.address, std::to_string(istiod.pid), istiod.log});
    PrintTable(rows);
    std::cout << "\n";
  }
  rows = {{"CLUSTER", server.control_planes() != nullptr ? "SECRETS" : "PLAINTEXT", "TLS", "UNIX SOCKET"}};
  for (const auto& grpc : server.grpc()) {
    const serve::GrpcListeners& where = grpc->where();
    rows.push_back({where.cluster, where.plaintext.empty() ? "-" : where.plaintext,
                    where.secure.empty() ? "-" : where.secure, where.unix_socket.empty() ? "-" : where.unix_socket});
    if (where.secure_waits) {
      std::cout << "note: " << where.cluster << " has no istiod with a certificate yet; " << where.secure
                << " listens once it has\n";
    }
    for (const std::string& address : {where.plaintext, where.secure}) {
      if (!address.empty() && !serve::IsLoopback(address)) {
        std::cout << "note: " << address << " is open to other machines, and no client of plaintext is authenticated\n";
      }
    }
  }
  PrintTable(rows);
  if (server.debug() != nullptr) {
    rows = {{"CLUSTER", "DEBUG INTERFACE"}};
    for (const serve::DebugListener& where : server.debug()->where()) {
      rows.push_back({where.cluster, "http://" + where.address + "/debug"});
    }
    std::cout << "\n";
    PrintTable(rows);
  }
  if (server.kube() != nullptr) {
    rows = {{"CLUSTER", "KUBERNETES API"}};
    for (const serve::KubeListener& where : server.kube()->where()) rows.push_back({where.cluster, where.server});
    std::cout << "\n";
    PrintTable(rows);
    if (!serve::IsLoopback(a.server.kube.listen)) {
      std::cout << "note: " << a.server.kube.listen << " is open to other machines"
                << (a.server.kube.token.empty() ? ", and authenticates no client" : "") << "\n";
    }
  }
  std::cout << "serving; end with Ctrl-C" << std::endl;
}

// --control-plane takes a real istiod's path beside what it takes of manifests, NAME=PRIMARY.
absl::Status TakeProgram(ServeArguments& a) {
  std::vector<std::string>& all = a.mesh.control_planes;
  for (auto it = all.begin(); it != all.end();) {
    if (it->find('=') != std::string::npos) {
      ++it;
      continue;
    }
    if (!a.server.control_plane.program.empty()) {
      return absl::InvalidArgumentError("--control-plane: two programs; one serves all clusters");
    }
    a.server.control_plane.program = *it;
    it = all.erase(it);
  }
  if (a.server.control_plane.program.empty()) return absl::OkStatus();
  return serve::CheckProgram(a.server.control_plane.program);
}

int Serve(const ServeArguments& a) {
  EndSignal end;
  absl::StatusOr<serve::SessionOptions> options = Plan(a);
  if (!options.ok()) return Complain(options.status());
  if (a.server.listen.empty() && a.server.secure_listen.empty() && a.server.unix_socket.empty()) {
    return Complain(absl::InvalidArgumentError("nothing to listen on: give --listen, --secure-listen or --uds"));
  }
  if ((a.grpc || a.delta) && a.bootstrap.empty() && a.bootstraps.empty()) {
    return Complain(
        absl::InvalidArgumentError("--grpc and --delta are of bootstraps: give --bootstrap POD or "
                                   "--bootstraps FOLDER"));
  }
  if (!a.advertise.empty() && a.bootstrap.empty() && a.bootstraps.empty() && a.pod_folders.empty()) {
    return Complain(absl::InvalidArgumentError(
        "--advertise is what bootstraps name: give --bootstrap POD, --bootstraps FOLDER or --pod-folders FOLDER"));
  }
  if (a.server.control_plane.program.empty() &&
      (!a.server.control_plane.folder.empty() || !a.control_plane_env.empty())) {
    return Complain(absl::InvalidArgumentError(
        "--control-plane-dir and --control-plane-env are of a real istiod: give --control-plane PROGRAM"));
  }
  if (a.server.kube.listen.empty() && (a.server.kube.tls || !a.kubeconfig.empty())) {
    return Complain(absl::InvalidArgumentError("--kube-tls and --kubeconfig are of the Kubernetes APIs: give --kube"));
  }
  if (!a.server.kube.tls && (a.server.kube.client_certificates || !a.kube_client_ca.empty())) {
    return Complain(absl::InvalidArgumentError(
        "--kube-client-certificates and --kube-client-ca are of TLS: give --kube-tls and --kubeconfig FILE"));
  }
  if (a.server.kube.tls && a.kubeconfig.empty()) {
    return Complain(absl::InvalidArgumentError("nobody would know the CA of --kube-tls: give --kubeconfig FILE"));
  }
  // Told of everything from the world's beginning; asked on its thread alone.
  const auto metrics = std::make_shared<capacity::IstiodMetrics>();
  serve::ServerOptions server_options = a.server;
  // Real istiods hold their own elections on the same clusters.
  options->write_elections = !a.server.kube.listen.empty() && a.server.control_plane.program.empty();
  const bool asked = !a.server.debug_listen.empty() || !a.server.kube.listen.empty();
  if (asked && a.server.control_plane.program.empty()) {
    options->on_world = [metrics](sim::World& world) { metrics->Observe(world.kernel()); };
    server_options.metrics = [metrics](const std::string& cluster) { return metrics->TextOf(cluster); };
  }
  absl::StatusOr<std::unique_ptr<serve::Session>> session = [&] {
    Progress progress;
    options->progress = [&](std::string_view what) { progress.Say(what); };
    return serve::Session::Create(*std::move(options));
  }();
  if (!session.ok()) return Complain(session.status());

  if (!a.bootstrap.empty()) {
    sim::World& world = (*session)->loop().world();
    // Where each pod's istiod would listen.
    std::map<std::string, serve::GrpcListeners> listeners;
    for (const scenario::ClusterSpec& cluster : (*session)->scenario().clusters) {
      if (!cluster.primary()) continue;
      const size_t index = listeners.size();
      listeners[cluster.name] = {cluster.name, serve::ListenAddress(a.server.listen, index), "",
                                 a.server.unix_socket.empty() || index == 0
                                     ? a.server.unix_socket
                                     : a.server.unix_socket + "." + cluster.name};
    }
    // The name may be a beginning, and stands in the message if it fits none.
    serve::BootstrapOptions to = BootstrapFor(a, listeners.begin()->second);
    for (const std::string& pod : serve::ProxiedPods(world)) {
      if (pod.rfind(a.bootstrap, 0) != 0) continue;
      const scenario::ClusterSpec* cluster = (*session)->scenario().FindCluster(world.FindPod(pod)->site().name);
      to = BootstrapFor(a, listeners[cluster->control_plane]);
    }
    absl::StatusOr<nlohmann::ordered_json> bootstrap = serve::BootstrapOf(world, a.bootstrap, to);
    if (!bootstrap.ok()) return Complain(bootstrap.status());
    std::cout << JsonText(*bootstrap, 1) << "\n";
    return kOk;
  }

  absl::StatusOr<std::unique_ptr<serve::Server>> server = serve::Server::Start(*std::move(session), server_options);
  if (!server.ok()) return Complain(server.status());
  if (!a.bootstraps.empty()) {
    if (absl::Status status = WriteBootstraps(a, **server); !status.ok()) return Complain(status);
  }
  if (!a.pod_folders.empty()) {
    if (absl::Status status = WritePodFolders(a, **server); !status.ok()) return Complain(status);
  }
  if (!a.kubeconfig.empty()) {
    if (absl::Status status = WriteKubeconfig(a, *(*server)->kube()); !status.ok()) return Complain(status);
  }
  Announce(a, **server);
  {
    // Beside the tables or the JSON on standard output.
    const auto report = [](const std::string& text) { std::cerr << "wavetank: " + text + "\n"; };
    serve::Session& live = (*server)->session();
    TellNacks(live.loop(), report);
    std::optional<serve::ManifestWatch> watch;
    if (!a.no_watch) watch.emplace(live.loop(), live.scenario().clusters, serve::ManifestWatch::Options{250ms, report});
    std::optional<serve::Player> player;
    if (a.play) player.emplace(live.loop(), live.scenario(), report);
    end.Await();
  }
  if (absl::Status status = (*server)->Stop(); !status.ok()) return Complain(status);
  const serve::Session& ended = (*server)->session();
  if (!a.invariants.empty() && !a.json)
    std::cout << report::ViolationsText(ended.violations(), (*server)->session().loop().world().options().start);
  return report::AnySurprise(ended.violations()) ? kNo : kOk;
}

}  // namespace

void AddServe(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "serve", "Runs a mesh in real time behind real servers: ADS, SDS and certificates by gRPC, for real Envoys");
  auto a = std::make_shared<ServeArguments>();
  a->mesh.AddTo(verb, "path", "A scenario, or a folder (or file) of manifests per cluster, which it names");
  verb->get_option("--control-plane")
      ->description(
          "Path of a real istiod (pilot-discovery 1.18), which serves ADS in place of our own, one per primary; or of "
          "manifests NAME=PRIMARY, for a cluster without an istiod of its own");
  serve::ServerOptions& s = a->server;
  verb->add_option("--mend", a->mend, "What of the mesh's gaps is filled in: all, none, or names (docs/mending.md)");
  verb->add_option("--listen", s.listen,
                   "Plaintext gRPC of the first primary; each further primary 100 ports above. Empty: none")
      ->capture_default_str();
  verb->add_option("--secure-listen", s.secure_listen, "The same over TLS, with the simulated CA's certificate")
      ->capture_default_str();
  verb->add_option("--uds", s.unix_socket, "Unix socket for plaintext gRPC; of further primaries PATH.CLUSTER");
  verb->add_option("--debug", s.debug_listen,
                   "Debug interface of the first primary's istiod, e.g. 127.0.0.1:15014 (/debug/syncz, /ready); of "
                   "each further one 100 ports above");
  verb->add_option("--kube", s.kube.listen,
                   "Kubernetes API of the first cluster, e.g. 127.0.0.1:8901; of each further one a port above");
  verb->add_option("--kube-token-file", a->kube_token_file,
                   "Holds the token that the Kubernetes APIs demand; without, everybody may do everything");
  verb->add_flag("--kube-tls", s.kube.tls,
                 "The Kubernetes APIs speak TLS, with a CA of their own that --kubeconfig's file names");
  verb->add_flag("--kube-client-certificates", s.kube.client_certificates,
                 "Only who has a client certificate or a ServiceAccount's token comes in; --kubeconfig's file has one");
  verb->add_option("--kube-client-ca", a->kube_client_ca,
                   "File of authorities whose client certificates count, too: common name is the user, organization "
                   "the group");
  verb->add_option("--kubeconfig", a->kubeconfig, "File to write the kubeconfig of the Kubernetes APIs into");
  verb->add_option("--control-plane-dir", s.control_plane.folder,
                   "Folder for their logs and working folders, which is kept (default: a temporary one)");
  verb->add_option("--control-plane-env", a->control_plane_env,
                   "NAME=VALUE for their environment, any number of times");
  verb->add_option("--profile", a->profile,
                   "istio; upstream-envoy leaves out what only Istio's Envoy knows; or a behaviour profile")
      ->capture_default_str();
  verb->add_option("-o,--log", a->log,
                   "Event log to write, for `wavetank replay`; with a real istiod, of what was done alone");
  verb->add_flag("--keep-secrets", a->keep_secrets,
                 "Store keys, tokens and passwords that clients and manifests bring: the log is then as secret as they "
                 "are, and replays without --secrets");
  verb->add_option("--durability", a->durability,
                   "What a killed process leaves in the log: acknowledged, all that any client was answered (an answer "
                   "leaves when its input is on disk); second, all but the last second; session, whatever was written")
      ->check(CLI::IsMember({"session", "second", "acknowledged"}))
      ->capture_default_str();
  verb->add_option("--bootstrap", a->bootstrap,
                   "Print the bootstrap of this pod's Envoy and end, e.g. sleep, or sleep-5d4f.sample@cluster1");
  verb->add_option("--bootstraps", a->bootstraps, "Folder to write all pods' bootstraps into, as POD.json");
  verb->add_option(
      "--pod-folders", a->pod_folders,
      "Folder to write, for each pod, what its agent finds: roots, token, labels, environment (docs/agent.md)");
  verb->add_option("--envoy", a->envoy, "Program that those agents start as their Envoy");
  verb->add_flag("--grpc", a->grpc, "Bootstraps are for GRPC_XDS_BOOTSTRAP: applications that speak xDS themselves");
  verb->add_option("--advertise", a->advertise, "Host that bootstraps name instead of the one listened on");
  verb->add_flag("--delta", a->delta, "Bootstraps ask for the delta protocol");
  verb->add_option("--secret-ttl", a->secret_ttl, "Lifetime of the certificates that SDS gives, e.g. 2m");
  verb->add_option("--timing", a->timing, "NAME=VALUE of `wavetank timing`, any number of times");
  verb->add_flag("--modelled-costs", a->modelled_costs, "istiods spend the processor time that scenarios charge them");
  verb->add_flag("--no-remote-secrets", a->no_remote_secrets, "Only those that the manifests bring");
  verb->add_option("--seed", a->seed, "Of the world, instead of the scenario's");
  verb->add_option("--max-message-bytes", s.limits.message_bytes, "Of one request")
      ->check(CLI::Range(int64_t{1024}, int64_t{1} << 30))
      ->capture_default_str();
  verb->add_option("--max-names", s.limits.names, "Of resources in one request")->capture_default_str();
  verb->add_option("--max-streams", s.limits.streams, "Of all clients together")->capture_default_str();
  verb->add_option("--max-streams-per-peer", s.limits.streams_per_peer, "From one address, over all its connections")
      ->capture_default_str();
  verb->add_option("--first-request-timeout", a->first_request, "For a new stream to ask for something; 0s: none")
      ->capture_default_str();
  verb->add_option("--idle-timeout", a->idle, "For a stream to ask or ACK something again; 0s: none")
      ->capture_default_str();
  verb->add_option("--max-streams-per-connection", s.limits.streams_per_connection, "Of one client's connection")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--max-unread-bytes", s.limits.unread_bytes,
                   "That wait for a client who does not read, before his stream is broken")
      ->capture_default_str();
  verb->add_option("--max-unread-bytes-total", s.limits.unread_bytes_total,
                   "That wait for all clients; beyond, who has more than his share of it loses his stream")
      ->capture_default_str();
  verb->add_option("--max-unread-answers", s.limits.unread_answers,
                   "That wait for one client before nothing more is read from him")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--invariants", a->invariants,
                   "Watch these, `all` or names between commas (`wavetank invariants`); what broke them is told at the "
                   "end, and is exit code 1");
  verb->add_flag("--play", a->play, "Do the scenario's steps, in real time");
  verb->add_flag("--no-watch", a->no_watch, "Leave it when manifests change on disk; otherwise changes are applied");
  verb->add_flag("--json", a->json, "Listeners and pods as one line of JSON once all is ready");
  OnlyWith(verb, {"--kube-token-file"}, "--kube");
  OnlyWith(verb, {"--durability"}, "--log");
  OnlyWith(verb, {"--envoy"}, "--pod-folders");
  verb->footer("Ends with SIGINT or SIGTERM. Exit code 0: ended so; 2: the input is wrong, or an address is taken.");
  verb->callback([a, &outcome] {
    if (!a->secret_ttl.empty()) {
      const std::optional<Duration> ttl = ParseDuration(a->secret_ttl);
      if (!ttl || *ttl <= 0s) {
        outcome.code = Complain(
            absl::InvalidArgumentError("--secret-ttl '" + a->secret_ttl + "' is no duration; write 2m or 24h"));
        return;
      }
      a->server.secrets.ttl = *ttl;
    }
    for (const auto& [flag, text, limit] :
         {std::tuple("--first-request-timeout", &a->first_request, &a->server.limits.first_request),
          std::tuple("--idle-timeout", &a->idle, &a->server.limits.idle)}) {
      const std::optional<Duration> duration = ParseDuration(*text);
      if (!duration || *duration < 0s) {
        outcome.code = Complain(absl::InvalidArgumentError(
            fmt::format("{} '{}' is no duration; write 30s or 10m, or 0s for none", flag, *text)));
        return;
      }
      *limit = *duration;
    }
    if (!a->kube_token_file.empty()) {
      absl::StatusOr<std::string> token = ReadToken(a->kube_token_file);
      if (!token.ok()) {
        outcome.code = Complain(token.status());
        return;
      }
      a->server.kube.token = *std::move(token);
    }
    if (!a->kube_client_ca.empty()) {
      absl::StatusOr<std::string> pem = ReadFile(a->kube_client_ca);
      const absl::Status read = pem.ok() ? x509::TrustBundle::FromPem(*pem, a->kube_client_ca).status() : pem.status();
      if (!read.ok()) {
        outcome.code = Complain(read);
        return;
      }
      a->server.kube.client_ca_pem = *std::move(pem);
    }
    if (absl::Status status = TakeProgram(*a); !status.ok()) {
      outcome.code = Complain(status);
      return;
    }
    for (const std::string& text : a->control_plane_env) {
      const auto pair = SplitPair(text, "--control-plane-env");
      if (!pair.ok()) {
        outcome.code = Complain(pair.status());
        return;
      }
      a->server.control_plane.environment[pair->first] = pair->second;
    }
    outcome.code = Serve(*a);
  });
}

}  // namespace wavetank::cli
