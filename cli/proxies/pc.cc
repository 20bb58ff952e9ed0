// wavetank pc, proxy-config: what a proxy holds, in istioctl's tables.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>

#include "cli/proxies/mesh_view.h"
#include "cli/proxies/one_proxy.h"
#include "cli/read_file.h"
#include "cli/tables/proxy_tables.h"
#include "cli/tables/yaml_text.h"
#include "cli/verb.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/kube/credentials/sealing.h"
#include "core/kube/time_format.h"
#include "core/profile/releases.h"
#include "core/x509/calendar.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "replay/secrets.h"
#include "serve/admin/config_dump.h"
#include "serve/admin/loggers.h"
#include "sim/pod_process.h"
#include "sim/world.h"

namespace wavetank::cli {
namespace {

using tables::EnvoyDump;

struct PcArguments {
  MeshViewArguments mesh;
  ServerArguments server;
  std::string table, proxy, file, output = "short", address, fqdn, subset, direction, name, type, cluster, status, date;
  int64_t port = 0;
  bool summary = false;
};

tables::Output OutputOf(const PcArguments& a) {
  return a.output == "json"   ? tables::Output::kJson
         : a.output == "yaml" ? tables::Output::kYaml
                              : tables::Output::kShort;
}

// What the tables are made of: a config_dump, its hosts, and the time that it is there; and the dump as `all` prints it
// as a document.
struct Held {
  EnvoyDump dump, hosts;
  Time now;
  std::string text;
};

absl::StatusOr<std::string> TableOf(const PcArguments& a, const std::string& table, const Held& held) {
  const tables::Output output = OutputOf(a);
  if (table == "clusters") return tables::ClusterTable(held.dump, {a.fqdn, a.subset, a.direction, a.port}, output);
  if (table == "listeners") return tables::ListenerTable(held.dump, {a.address, a.type, a.port, !a.summary}, output);
  if (table == "routes") return tables::RouteTable(held.dump, {a.name, !a.summary}, output);
  if (table == "endpoints") return tables::EndpointTable(held.hosts, {a.address, a.cluster, a.status, a.port}, output);
  if (table == "secret") return tables::SecretTable(held.dump, held.now, output);
  if (table == "ecds") return tables::ExtensionTable(held.dump, output);
  return tables::BootstrapText(held.dump, output);
}

absl::Status Print(const PcArguments& a, const Held& held) {
  std::vector<std::string> all = {a.table};
  if (a.table == "all") {
    // istioctl: cmd/proxyconfig.go, allConfigCmd(); pkg/writer/envoy/configdump, PrintFullSummary().
    if (a.output == "yaml") {
      std::cout << tables::YamlText(ParseJson(held.text)) << "\n";
    } else if (a.output == "json") {
      std::cout << held.text << "\n";
    }
    if (a.output != "short") return absl::OkStatus();
    all = {"clusters", "listeners", "routes", "secret"};
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const absl::StatusOr<std::string> text = TableOf(a, all[i], held);
    // A dump need not hold everything.
    if (!text.ok() && (all.size() == 1 || !absl::IsNotFound(text.status()))) return text.status();
    if (!text.ok()) continue;
    if (i > 0) std::cout << "\n";
    std::cout << *text;
  }
  return absl::OkStatus();
}

// As istioctl begins what it prints of each pod (istioctl: cmd/proxyconfig.go, logCmd()).
std::string LogLevels(const std::string& ns, const std::string& pod, const std::string& loggers) {
  return fmt::format("{}.{}:\n{}", pod, ns, loggers);
}

Time RealNow() {
  const auto unix_time = std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
  return Time(unix_time - std::chrono::seconds(kWorldEpochUnixSeconds));
}

absl::Status OfFile(const PcArguments& a) {
  if (a.table == "log")
    return absl::InvalidArgumentError("log: a dump holds no levels; name a scenario, an event log or --server URL");
  std::string text;
  if (a.file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    absl::StatusOr<std::string> read = ReadFile(a.file);
    if (!read.ok()) return read.status();
    text = *std::move(read);
  }
  absl::StatusOr<EnvoyDump> dump = EnvoyDump::Read(text, a.file);
  if (!dump.ok()) return dump.status();
  Time now = RealNow();
  if (!a.date.empty()) {
    const std::optional<int64_t> date = kube::ParseRfc3339(a.date);
    if (!date) return absl::InvalidArgumentError(fmt::format("--date '{}': write 2023-09-01T00:00:00Z", a.date));
    now = x509::FromUnixSeconds(*date);
  }
  return Print(a, {*dump, *dump, now, text});
}

absl::Status OfMesh(const PcArguments& a) {
  return LookAtMesh(a.mesh, [&](sim::World& world, const serve::HeldConfig& held) {
    const absl::StatusOr<const sim::PodProcess*> found = FindProxy(world, a.proxy);
    if (!found.ok()) return found.status();
    const sim::PodProcess& pod = **found;
    if (a.table == "log") {
      const kube::Object& object = *pod.pod();
      std::cout << LogLevels(object.meta.ns, object.meta.name,
                             serve::ActiveLoggers(object, pilot::ReleaseOf(world.commons().profile).envoy));
      return absl::OkStatus();
    }
    nlohmann::json dump = serve::ProxyConfigDump(pod, held.Of(pod.name()), a.table != "all");
    // Tokens that a configuration holds are shown to nobody; of secrets the dump has certificates alone.
    for (nlohmann::json& section : dump["configs"]) {
      if (Text(section, "@type").ends_with(".SecretsConfigDump")) continue;
      section = kube::Sealed(replay::RedactedWithin(std::move(section)));
    }
    const std::string text = a.table == "all" ? JsonText(dump, 1) : std::string();
    return Print(a, {EnvoyDump::Of(std::move(dump)), EnvoyDump::Of(serve::ProxyClusters(pod)), world.Now(), text});
  });
}

// Of a running `serve --kube`, through the API server's way to a pod's ports.
absl::Status OfServer(const PcArguments& a) {
  if (a.table == "log") {
    const absl::StatusOr<std::string> page = AdminPage(a.server, a.proxy, "logging", "POST");
    if (!page.ok()) return page.status();
    const size_t dot = a.proxy.find('.'), at = a.proxy.find('@');
    std::cout << LogLevels(a.proxy.substr(dot + 1, at == std::string::npos ? at : at - dot - 1), a.proxy.substr(0, dot),
                           *page);
    return absl::OkStatus();
  }
  const std::string path = a.table == "all" ? "config_dump" : "config_dump?include_eds",
                    of_hosts = "clusters?format=json";
  const absl::StatusOr<std::string> page = AdminPage(a.server, a.proxy, path);
  if (!page.ok()) return page.status();
  absl::StatusOr<EnvoyDump> dump = EnvoyDump::Read(*page, path);
  if (!dump.ok()) return dump.status();
  const absl::StatusOr<std::string> hosts_page = AdminPage(a.server, a.proxy, of_hosts);
  if (!hosts_page.ok()) return hosts_page.status();
  absl::StatusOr<EnvoyDump> hosts = EnvoyDump::Read(*hosts_page, of_hosts);
  if (!hosts.ok()) return hosts.status();
  return Print(a, {*std::move(dump), *std::move(hosts), RealNow(), *page});
}

// Which tables each filter is of; `all` has all of them.
absl::Status CheckFilters(const CLI::App& verb, const std::string& table) {
  const std::pair<const char*, std::vector<std::string_view>> filters[] = {
      {"--port", {"clusters", "listeners", "endpoints"}},
      {"--fqdn", {"clusters"}},
      {"--subset", {"clusters"}},
      {"--direction", {"clusters"}},
      {"--address", {"listeners", "endpoints"}},
      {"--type", {"listeners"}},
      {"--name", {"routes"}},
      {"--cluster", {"endpoints"}},
      {"--status", {"endpoints"}},
      {"--summary", {"listeners", "routes"}}};
  if (table == "all") return absl::OkStatus();
  for (const auto& [option, tables] : filters) {
    if (verb.get_option(option)->count() == 0 || std::find(tables.begin(), tables.end(), table) != tables.end())
      continue;
    return absl::InvalidArgumentError(
        fmt::format("{} is of {}; leave it out for {}", option, fmt::join(tables, " and "), table));
  }
  return absl::OkStatus();
}

int Run(const PcArguments& a) {
  const int sources = !a.file.empty() + !a.server.url.empty() + !a.mesh.source.empty();
  if (sources != 1) {
    return Complain(absl::InvalidArgumentError(
        "what to look at: one of a scenario or an event log, -f FILE (a config_dump), --server URL (of serve --kube)"));
  }
  if (!a.file.empty()) {
    const absl::Status status = OfFile(a);
    return status.ok() ? kOk : Complain(status);
  }
  if (a.proxy.empty()) return Complain(absl::InvalidArgumentError("which proxy: --proxy sleep@cluster1"));
  const absl::Status status = a.server.url.empty() ? OfMesh(a) : OfServer(a);
  return status.ok() ? kOk : Complain(status);
}

}  // namespace

void AddPc(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("pc", "What a proxy holds, in the tables of `istioctl proxy-config`");
  verb->alias("proxy-config");
  auto a = std::make_shared<PcArguments>();
  verb->add_option("table", a->table, "clusters, listeners, routes, endpoints, secret, ecds, bootstrap, log or all")
      ->required()
      ->transform(CLI::CheckedTransformer(std::map<std::string, std::string>{{"clusters", "clusters"},
                                                                             {"cluster", "clusters"},
                                                                             {"cds", "clusters"},
                                                                             {"c", "clusters"},
                                                                             {"listeners", "listeners"},
                                                                             {"listener", "listeners"},
                                                                             {"lds", "listeners"},
                                                                             {"l", "listeners"},
                                                                             {"routes", "routes"},
                                                                             {"route", "routes"},
                                                                             {"rds", "routes"},
                                                                             {"r", "routes"},
                                                                             {"endpoints", "endpoints"},
                                                                             {"endpoint", "endpoints"},
                                                                             {"eds", "endpoints"},
                                                                             {"ep", "endpoints"},
                                                                             {"secret", "secret"},
                                                                             {"secrets", "secret"},
                                                                             {"s", "secret"},
                                                                             {"ecds", "ecds"},
                                                                             {"ec", "ecds"},
                                                                             {"log", "log"},
                                                                             {"o", "log"},
                                                                             {"bootstrap", "bootstrap"},
                                                                             {"b", "bootstrap"},
                                                                             {"all", "all"},
                                                                             {"a", "all"}}));
  verb->add_option("source", a->mesh.source, "Scenario or event log");
  verb->add_option("--proxy", a->proxy, "sleep@cluster1, deploy/sleep.sample@cluster1, or a pod's full name");
  verb->add_option("-f,--file", a->file, "config_dump (or /clusters?format=json) of any Envoy; - is standard input");
  a->server.AddTo(verb);
  a->mesh.AddTo(verb);
  verb->add_option("-o,--output", a->output, "short, json or yaml (of bootstrap json, if left out)")
      ->check(CLI::IsMember({"short", "json", "yaml"}))
      ->capture_default_str();
  verb->add_option("--port", a->port, "Of clusters, listeners and endpoints")->check(CLI::Range(0, 65535));
  verb->add_option("--fqdn", a->fqdn, "Part of a cluster's name: the service");
  verb->add_option("--subset", a->subset, "Part of a cluster's name: the subset");
  verb->add_option("--direction", a->direction, "inbound or outbound, of clusters")
      ->check(CLI::IsMember({"inbound", "outbound"}));
  verb->add_option("--address", a->address, "Of listeners and endpoints");
  verb->add_option("--type", a->type, "HTTP, TCP, HTTP+TCP or UNKNOWN, of listeners");
  verb->add_option("--name", a->name, "Of a route configuration");
  verb->add_option("--cluster", a->cluster, "Of endpoints: outbound|5000||helloworld.sample.svc.cluster.local");
  verb->add_option("--status", a->status, "healthy, unhealthy, ..., of endpoints");
  verb->add_option("--date", a->date, "At which -f's certificates are looked at (default: now)");
  verb->add_flag("--summary", a->summary, "Listeners and routes in one line each (istioctl's --verbose=false)");
  NotWith(verb, {"--at", "--step", "--profile"}, "--server");
  NotWith(verb, {"--at", "--step", "--profile", "--proxy"}, "--file");
  OnlyWith(verb, {"--date"}, "--file");
  verb->callback([a, verb, &outcome] {
    if (a->table == "bootstrap" && verb->get_option("--output")->count() == 0) a->output = "json";
    const absl::Status status = CheckFilters(*verb, a->table);
    outcome.code = status.ok() ? Run(*a) : Complain(status);
  });
}

}  // namespace wavetank::cli
