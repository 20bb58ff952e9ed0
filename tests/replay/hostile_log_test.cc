// A log may be whole, rightly chained, and hold inputs that no world ever wrote.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/json_text.h"
#include "core/base/random.h"
#include "fakes/kube/objects/manifest.h"
#include "replay/world_target.h"
#include "tests/hostile_json.h"
#include "tests/long.h"

namespace wavetank::replay {
namespace {

using nlohmann::json;

struct Given {
  std::string kind;
  json body;
};

// One input of every kind, and every object that scenarios are made of.
std::vector<Given> Inputs() {
  std::vector<Given> out = {
      {"install", {{"cluster", "c1"}}},
      {"cacerts", {{"cluster", "c1"}, {"root", "root"}}},
      {"delete", {{"cluster", "c1"}, {"kind", "Service"}, {"namespace", "sample"}, {"name", "helloworld"}}},
      {"patch",
       {{"cluster", "c1"},
        {"kind", "Deployment"},
        {"namespace", "sample"},
        {"name", "sleep"},
        {"patch", {{"spec", {{"replicas", 2}}}, {"metadata", {{"labels", {{"a", "b"}}}}}}}}},
      {"remoteSecret", {{"of", "c1"}, {"in", "c1"}, {"state", "rotated"}}},
      {"loadBalancer",
       {{"cluster", "c1"}, {"namespace", "istio-system"}, {"name", "istio-eastwestgateway"}, {"address", "new"}}},
      {"link", {{"between", {"c1", "c1"}}, {"cut", false}, {"latencyNs", 5}, {"jitterNs", 5}, {"lossPpm", 5}}},
      {"kill", {{"cluster", "c1"}, {"namespace", "sample"}, {"app", "sleep"}}},
      {"apiServer", {{"cluster", "c1"}, {"fault", "slow"}, {"latencyNs", 5}, {"retryAfterNs", 5}, {"skewNs", 5}}},
      {"apiServer", {{"cluster", "c1"}, {"fault", "clock-skew"}, {"skewNs", 5}}},
      {"apiServer", {{"cluster", "c1"}, {"fault", "none"}}},
      {"dns", {{"name", "a.example"}, {"addresses", {"10.0.0.1"}}}},
      {"keySet",
       {{"uri", "https://a.example/keys"}, {"keys", {{"keys", json::array()}}}, {"issuer", "https://a.example"}}},
      {"issuer", {{"name", "me"}, {"jwksUri", "https://me.example"}}},
      {"traffic",
       {{"id", "t"},
        {"flow", "f"},
        {"from", {{"cluster", "c1"}, {"namespace", "sample"}, {"app", "sleep"}}},
        {"host", "helloworld.sample"},
        {"port", 5000},
        {"path", "/hello"},
        {"keepAlive", true},
        {"tcp", false},
        {"requests", 3},
        {"periodNs", 1000000},
        {"method", "GET"},
        {"headers", {{"a", "b"}}},
        {"token",
         {{"issuer", "me"},
          {"lifetimeNs", 1000000000},
          {"header", "x"},
          {"audiences", {"a"}},
          {"claims", {{"a", 1}}}}}}},
      {"stopTraffic", {{"id", "t"}}},
      {"kubeRequest",
       {{"cluster", "c1"},
        {"method", "POST"},
        {"path", "/api/v1/namespaces/sample/configmaps"},
        {"query", ""},
        {"contentType", "application/json"},
        {"body",
         {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "a"}, {"labels", {{"a", "b"}}}}}}}}},
      {"xdsOpen", {{"client", 1}, {"cluster", "c1"}, {"address", "1.2.3.4:5"}, {"peer", {{"tls", false}}}}},
      {"xdsRequest",
       {{"client", 1},
        {"type", "type.googleapis.com/envoy.config.cluster.v3.Cluster"},
        {"node",
         {{"id", "sidecar~10.1.0.9~a.sample~sample.svc.cluster.local"},
          {"locality", {"r", "z", ""}},
          {"metadata", {{"CLUSTER_ID", "c1"}, {"NAMESPACE", "sample"}, {"LABELS", {{"a", "b"}}}}}}}}},
      {"xdsDeltaRequest", {{"client", 1}, {"type", "x"}, {"subscribe", {"a"}}, {"versions", {{"a", "1"}}}}},
      {"certificateRequest",
       {{"client", 2}, {"cluster", "c1"}, {"peer", {{"tls", true}}}, {"csr", "x"}, {"validitySeconds", 5}}},
      {"xdsClose", {{"client", 1}}},
  };
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(WAVETANK_SOURCE_DIR "/scenarios/manifests")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    const auto objects = fakekube::LoadManifests(file.string());
    if (!objects.ok()) continue;
    for (const fakekube::Manifest& manifest : *objects) {
      json object = manifest.object;
      if (!object["metadata"].contains("namespace")) object["metadata"]["namespace"] = "sample";
      out.push_back({"apply", {{"cluster", "c1"}, {"object", std::move(object)}}});
    }
  }
  return out;
}

LogHeader Header() {
  sim::WorldOptions options;
  options.clusters.push_back(
      {"c1", "n1", "c1", "10.1.0.0/16", "10.96.0.0/16", "172.30.1.0/24", false, {{"n1", "region1", "zone1"}}});
  LogHeader header;
  header.world = ParseJson(JsonText(options.ToJson()));
  return header;
}

TEST(HostileLog, NoInputEndsTheProcess) {
  const std::vector<Given> inputs = Inputs();
  const uint64_t rounds = LongTests() ? 60 : 6;
  for (uint64_t round = 0; round < rounds; ++round) {
    RandomStream random(round, "hostile");
    WorldTarget target;
    ASSERT_TRUE(target.Start(Header(), [](const LoggedEvent&) {}).ok());
    Time now{};
    uint64_t seq = 0;
    const auto give = [&](const std::string& kind, const json& body) {
      SCOPED_TRACE(kind + " " + JsonText(body).substr(0, 2000));
      target.AdvanceTo(now += 100ms);
      target.Do({now, seq++, kind, ParseJson(JsonText(body))}).IgnoreError();
    };
    for (const Given& each : inputs) {
      if (each.kind == "install" || each.kind == "apply") give(each.kind, each.body);
    }
    target.AdvanceTo(now += 30s);
    for (int i = 0; i < 250; ++i) {
      const Given& each = inputs[random.Below(inputs.size())];
      give(each.kind, Mutated(each.body, random));
    }
    target.AdvanceTo(now += 30s);
  }
}

TEST(HostileLog, NoWorldsDescriptionEndsTheProcess) {
  const LogHeader good = Header();
  RandomStream random(1, "world");
  int refused = 0;
  for (int i = 0; i < 600; ++i) {
    LogHeader bad = good;
    bad.world = ParseJson(JsonText(Mutated(good.world, random)));
    WorldTarget target;
    if (!target.Start(bad, [](const LoggedEvent&) {}).ok()) ++refused;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace wavetank::replay
