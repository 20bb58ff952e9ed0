#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "absl/strings/numbers.h"
#include "capacity/fleet/fleet.h"
#include "capacity/fleet/fleet_rows.h"

namespace wavetank::capacity {
namespace {

using scenario::Document;
using scenario::Field;

// Pods of a cluster have a /16 of their own, as a scenario's do.
constexpr int64_t kAddresses = 65'534;

// "2", "500m", "4Gi": the number and what stands behind it.
std::optional<double> Quantity(const std::string& text,
                               std::initializer_list<std::pair<std::string_view, double>> units) {
  for (const auto& [unit, scale] : units) {
    if (text.size() <= unit.size() || !text.ends_with(unit)) continue;
    double value = 0;
    if (absl::SimpleAtod(text.substr(0, text.size() - unit.size()), &value) && std::isfinite(value) && value > 0) {
      return value * scale;
    }
  }
  return std::nullopt;
}

void ReadEndpoints(const Field& f, EndpointsSpec* out) {
  if (!f.present()) return;
  if (const Field range = f["range"]; range.present()) {
    out->kind = EndpointsSpec::Kind::kRange;
    out->least = range["least"].Integer(0, 0, 1'000'000);
    out->most = range["most"].Integer(0, 0, 1'000'000);
    if (out->most < out->least) range["most"].Fail("is less than least", "write the larger one as most");
  } else if (const Field zipf = f["zipf"]; zipf.present()) {
    out->kind = EndpointsSpec::Kind::kZipf;
    out->most = zipf["most"].Integer(1, 1, 1'000'000);
    const std::string text = zipf["exponent"].Text("1");
    if (!absl::SimpleAtod(text, &out->exponent) || !(out->exponent >= 0.1 && out->exponent <= 3)) {
      zipf["exponent"].Fail(fmt::format("'{}' is no exponent", text), "write a number from 0.1 to 3");
    }
  } else {
    out->fixed = f["fixed"].Integer(2, 0, 1'000'000);
  }
}

// Zero would mean without end.
Duration Every(const Field& f) {
  if (!f.present()) return Duration::zero();
  const Field every = f["every"];
  const Duration time = every.Time(Duration::zero());
  if (every.present() && time < 1ms) every.Fail("is too often", "write 1ms or more, or leave the churn out");
  return time;
}

constexpr size_t kMostPoints = 1440;

void ReadDay(const Field& f, ChurnSpec* out) {
  if (!f.present()) return;
  for (const Field& point : f["curve"].Items()) {
    const std::optional<int64_t> share = scenario::ParseShare(point.Text());
    if (!share || *share < 0 || *share > 1'000'000) {
      point.Fail(fmt::format("'{}' is no share", point.Text()), "write 0% to 100%, of the endpoints of each Service");
      return;
    }
    out->day_ppm.push_back(*share);
  }
  if (out->day_ppm.size() < 2 || out->day_ppm.size() > kMostPoints) {
    f["curve"].Fail(fmt::format("has {} shares", out->day_ppm.size()),
                    fmt::format("write 2 to {}; 24 are one an hour", kMostPoints));
  }
  out->day_begins = f["begins"].Time(Duration::zero());
  if (out->day_begins >= 24h) f["begins"].Fail("is no time of day", "write 0s to 23h59m");
}

void ReadAutoscaling(const Field& f, ChurnSpec* out) {
  if (!f.present()) return;
  ReadDay(f["day"], out);
  if (f["every"].present() == f["day"].present()) {
    f.Fail("has both of every and day, or neither", "write one: every for single Services, day for a curve");
    return;
  }
  if (f["day"].present() && f["swing"].present()) f["swing"].Fail("goes with every", "leave it out; the curve says it");
  out->autoscaling = Every(f);
  out->swing_ppm = f["swing"].Share(out->swing_ppm);
}

void ReadChurn(const Field& f, ChurnSpec* out) {
  if (!f.present()) return;
  out->deploys = Every(f["deploys"]);
  out->surge_ppm = f["deploys"]["surge"].Share(out->surge_ppm);
  out->pod_start = f["deploys"]["podStart"].Time(out->pod_start);
  out->flapping = f["flapping"]["pods"].Integer(0, 1, 1'000'000);
  if (f["flapping"].present()) out->flapping_every = Every(f["flapping"]);
  ReadAutoscaling(f["autoscaling"], out);
  out->node_loss = Every(f["nodeLoss"]);
  out->config_edits = Every(f["configEdits"]);
  out->secret_rotation = Every(f["secretRotation"]);
  out->istiod_restarts = Every(f["istiodRestarts"]);
}

void ReadTraffic(const Field& f, ServiceGraphSpec* out) {
  if (!f.present()) return;
  out->entries = f["entries"].Integer(1, 1, 1000);
  out->rate_per_kilosecond = f["rate"].RatePerKilosecond(out->rate_per_kilosecond);
  out->calls = f["calls"].Integer(out->calls, 1, 100);
  out->depth = f["depth"].Integer(out->depth, 0, 10);
  out->latency = f["latency"].Time(out->latency);
}

void ReadIstiod(const Field& f, IstiodSpec* out) {
  if (!f.present()) return;
  out->replicas = f["replicas"].Integer(out->replicas, 1, 1000);
  if (const Field cpu = f["cpu"]; cpu.present()) {
    const auto cpus = Quantity(cpu.Text(), {{"m", 0.001}, {"", 1}});
    if (!cpus || *cpus > 256 || *cpus < 0.01) cpu.Fail(fmt::format("'{}' is no cpu", cpu.Text()), "write 2 or 500m");
    out->cpus = cpus.value_or(2);
  }
  if (const Field memory = f["memory"]; memory.present()) {
    const auto mb = Quantity(memory.Text(), {{"Gi", 1024}, {"Mi", 1}, {"G", 953.674}, {"M", 0.953674}});
    if (!mb) memory.Fail(fmt::format("'{}' is no memory", memory.Text()), "write 4Gi or 512Mi");
    out->memory_mb = mb.value_or(4096);
  }
  out->debounce_after = f["debounceAfter"].Time(out->debounce_after);
  out->debounce_max = f["debounceMax"].Time(out->debounce_max);
  out->push_throttle = f["pushThrottle"].Integer(out->push_throttle, 1, 1'000'000);
  out->requests_per_second = f["requestsPerSecond"].Integer(out->requests_per_second, 1, 1'000'000);
  out->api_qps = f["kubernetesApiQPS"].Integer(out->api_qps, 1, 1'000'000);
  out->api_burst = f["kubernetesApiBurst"].Integer(out->api_burst, 1, 1'000'000);
}

// What no cluster could be.
void CheckThatItCanBe(const Field& f, const Fleet& fleet) {
  if (!f.ok()) return;
  for (int64_t cluster = 0; cluster < fleet.clusters; ++cluster) {
    int64_t pods = fleet.gateways + fleet.istiod.replicas;
    for (const int64_t endpoints : DrawEndpoints(fleet, cluster)) pods += endpoints;
    pods = std::max(pods, fleet.proxies + fleet.gateways + fleet.istiod.replicas);
    if (pods > kAddresses) {
      return f["services"].Fail(
          fmt::format("cluster{} has {} pods, and addresses for {}", cluster + 1, pods, kAddresses),
          "fewer endpoints or proxies in a cluster, and more clusters");
    }
    if (fleet.churn.flapping > pods) {
      return f["churn"]["flapping"]["pods"].Fail(
          fmt::format("{} pods flap, of {} in a cluster", fleet.churn.flapping, pods), "let fewer flap");
    }
    if (fleet.endpoints.kind != EndpointsSpec::Kind::kFixed && cluster > 3) break;  // the others are drawn alike
  }
  if (fleet.nodes < fleet.zones) {
    f["clusters"]["zones"].Fail(fmt::format("{} zones have {} nodes", fleet.zones, fleet.nodes),
                                "a node for each zone");
  }
  if (fleet.traffic.entries > fleet.services) {
    f["traffic"]["entries"].Fail(fmt::format("{} of {} services", fleet.traffic.entries, fleet.services),
                                 "clients call no more than there are");
  }
  if (fleet.traffic.entries > 0 && fleet.proxies == 0) {
    f["traffic"].Fail("nobody has a sidecar to send it", "write perCluster: 1 or more under proxies");
  }
  if (fleet.churn.secret_rotation > Duration::zero() && fleet.clusters == 1) {
    f["churn"]["secretRotation"].Fail("one cluster has no remote Secret", "leave it out, or add clusters");
  }
  if (fleet.istiod.debounce_max < fleet.istiod.debounce_after) {
    f["istiod"]["debounceMax"].Fail("is shorter than debounceAfter", "make it longer");
  }
}

Fleet Read(const Field& f) {
  Fleet out;
  out.name = f["name"].Text();
  out.seed = static_cast<uint64_t>(f["seed"].Integer(1, 0, INT64_MAX));
  out.duration = f["duration"].Time(out.duration);
  if (out.duration < 1s || out.duration > 48h) f["duration"].Fail("is no time to simulate", "write 1s to 48h");
  const Field clusters = f["clusters"];
  out.clusters = clusters["count"].Integer(1, 1, 1000);
  out.one_network = clusters["networks"].OneOf({"each", "one"}, "each") == "one";
  out.namespaces = clusters["namespaces"].Integer(1, 1, 10'000);
  out.nodes = clusters["nodes"].Integer(3, 1, 15'000);
  out.zones = clusters["zones"].Integer(1, 1, 26);
  const Field services = f["services"];
  out.services = services["perCluster"].Integer(10, 1, 100'000);
  out.shared_ppm = services["shared"].Share(0);
  ReadEndpoints(services["endpoints"], &out.endpoints);
  const Field proxies = f["proxies"];
  out.proxies = proxies["perCluster"].Integer(10, 0, 200'000);
  out.gateways = proxies["gateways"].Integer(1, 0, 1000);
  const Field configuration = f["configuration"];
  out.scope = configuration["sidecarScope"].Integer(0, 1, 100'000);
  out.virtual_services_ppm = configuration["virtualServices"].Share(0);
  out.destination_rules_ppm = configuration["destinationRules"].Share(0);
  out.authorization_policies_ppm = configuration["authorizationPolicies"].Share(0);
  ReadTraffic(f["traffic"], &out.traffic);
  ReadChurn(f["churn"], &out.churn);
  ReadIstiod(f["istiod"], &out.istiod);
  CheckThatItCanBe(f, out);
  return out;
}

// All mappings below, each against its row.
void CheckRows(const Field& f, const scenario::MappingRow& row) {
  scenario::CheckMapping(f, row, nullptr);
  for (const scenario::FieldRow& field : row.fields) {
    if (field.type != scenario::FieldType::kMapping || !f.ok()) continue;
    if (const Field value = f[std::string(field.name)]; value.present()) CheckRows(value, FleetRow(field.row));
  }
}

absl::StatusOr<Fleet> FromDocument(Document& document) {
  CheckRows(document.root(), FleetRow("fleet"));
  if (!document.status().ok()) return document.status();
  Fleet fleet = Read(document.root());
  if (!document.status().ok()) return document.status();
  return fleet;
}

}  // namespace

absl::StatusOr<Fleet> LoadFleet(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Document>> document = Document::Load(path);
  if (!document.ok()) return document.status();
  return FromDocument(**document);
}

absl::StatusOr<Fleet> ParseFleet(const std::string& name, const std::string& text) {
  absl::StatusOr<std::unique_ptr<Document>> document = Document::Parse(name, text);
  if (!document.ok()) return document.status();
  return FromDocument(**document);
}

nlohmann::ordered_json FleetSchema() {
  nlohmann::ordered_json out = SchemaOf(FleetRow("fleet"));
  nlohmann::ordered_json definitions = nlohmann::ordered_json::object();
  for (const scenario::MappingRow& row : FleetRows()) definitions[std::string(row.name)] = SchemaOf(row);
  out["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  out["title"] = "A fleet of Wavetank";
  out["$defs"] = std::move(definitions);
  return out;
}

}  // namespace wavetank::capacity
