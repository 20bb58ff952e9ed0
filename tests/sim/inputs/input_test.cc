#include "sim/inputs/input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/inputs/kinds/api_server.h"
#include "sim/inputs/kinds/network.h"
#include "sim/inputs/kinds/outside.h"
#include "sim/inputs/kinds/pods.h"
#include "sim/inputs/kinds/traffic.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Bodies as logs of earlier programs have them, one and more of every kind.
const std::vector<std::pair<std::string, json>>& Logged() {
  static const auto* const all = new std::vector<std::pair<std::string, json>>{
      {"install", {{"cluster", "c1"}}},
      {"apply", {{"cluster", "c1"}, {"object", {{"kind", "Pod"}, {"n", 1.5}}}}},
      {"delete", {{"cluster", "c1"}, {"kind", "Pod"}, {"namespace", ""}, {"name", "p"}}},
      {"patch", {{"cluster", "c1"}, {"kind", "Pod"}, {"namespace", "a"}, {"name", "p"}, {"patch", {{"a", nullptr}}}}},
      {"cacerts", {{"cluster", "c1"}, {"root", "root"}}},
      {"upgrade", {{"cluster", "c1"}, {"profile", "istio-1.30"}, {"part", "gateways"}}},
      {"upgrade", {{"cluster", "c1"}, {"profile", "istio-1.30"}, {"revision", "1-30-3"}, {"part", "istiod"}}},
      {"remoteSecret", {{"of", "c2"}, {"in", "c1"}, {"state", "rotated"}}},
      {"loadBalancer", {{"cluster", "c1"}, {"namespace", "a"}, {"name", "s"}, {"address", "none"}}},
      {"link", {{"between", {"c1", "c2"}}, {"cut", false}}},
      {"link", {{"between", {"c1", "c2"}}, {"latencyNs", 5}, {"jitterNs", 0}, {"lossPpm", 100'000}}},
      {"restart", {{"cluster", "c1"}, {"kind", "Deployment"}, {"namespace", "a"}, {"name", "d"}}},
      {"cordon", {{"cluster", "c1"}, {"node", "n"}, {"unschedulable", false}}},
      {"taint", {{"cluster", "c1"}, {"node", "n"}, {"key", "k"}, {"effect", "NoExecute"}}},
      {"taint", {{"cluster", "c1"}, {"node", "n"}, {"key", "k"}, {"remove", true}}},
      {"node", {{"cluster", "c1"}, {"node", "n"}, {"lost", true}}},
      {"drain", {{"cluster", "c1"}, {"node", "n"}, {"timeoutNs", 5}}},
      {"clock", {{"cluster", "c1"}, {"node", "n"}, {"aheadNs", -5}}},
      {"moveGateway", {{"cluster", "c1"}, {"to", "c2"}, {"namespace", "istio-system"}, {"name", "gateway"}}},
      {"behaviour",
       {{"app", "helloworld"},
        {"latency", {{{"sharePpm", 500'000}, {"ns", 5}}, {{"sharePpm", 1'000'000}, {"ns", 9}}}},
        {"answers", {{{"code", 503}, {"sharePpm", 100'000}, {"header", "x"}, {"value", "y"}}}},
        {"ready", true},
        {"slowFactor", 1}}},
      {"behaviour",
       {{"app", "frontend"},
        {"ready", true},
        {"slowFactor", 1},
        {"calls",
         {{{"host", "b"},
           {"port", 80},
           {"path", "/"},
           {"method", "GET"},
           {"headers", {{"x", "y"}}},
           {"onPath", "/o"},
           {"sharePpm", 500'000},
           {"timeoutNs", 7},
           {"retries", {{"attempts", 2}, {"backOffNs", 5}, {"mostNs", 9}, {"on", {"5xx", "429"}}}},
           {"optional", true}}}},
        {"parallel", true},
        {"callFailed", 500}}},
      {"live", {{"cluster", "c1"}}},
      {"firewall",
       {{"state", "deny"},
        {"name", "f"},
        {"from", {"c1"}},
        {"to", {"10.2.0.0/16"}},
        {"ports", {"443"}},
        {"reject", true},
        {"established", true}}},
      {"route", {{"from", "east"}, {"to", "west"}, {"ranges", {"10.2.0.0/16"}}, {"lost", true}}},
      {"claim", {{"claim", {{"kind", "push"}}}}},
      {"logLevel", {{"cluster", "c1"}, {"pod", "istiod-1"}, {"scope", "ads"}, {"output", "none"}, {"callers", true}}},
      {"buggify", {{"seed", 7}, {"points", {"watch-broken"}}}},
      {"kill", {{"cluster", "c1"}, {"namespace", ""}, {"app", "sleep"}}},
      {"apiServer", {{"cluster", "c1"}, {"fault", "clock-skew"}, {"skewNs", -5}}},
      {"dns", {{"name", "a.example"}, {"addresses", json::array()}}},
      {"dns",
       {{"name", "a.example"}, {"addresses", {"10.0.0.1"}}, {"alias", "b"}, {"failing", {"A", "AAAA"}}, {"ttlNs", 5}}},
      {"keySet", {{"uri", "https://i.example/k"}, {"keys", {{"keys", json::array()}}}}},
      {"keySet", {{"uri", "https://i.example/k"}}},
      {"issuer", {{"name", "i"}, {"jwksUri", ""}}},
      {"traffic",
       {{"id", "f#0"},
        {"flow", "f"},
        {"from", {{"cluster", "c1"}, {"namespace", "a"}, {"app", "sleep"}}},
        {"host", "h"},
        {"port", 5000},
        {"path", "/"},
        {"keepAlive", false},
        {"tcp", false},
        {"requests", 0},
        {"periodNs", 10'000'000}}},
      {"traffic",
       {{"id", "f#1"},
        {"flow", "f"},
        {"from", {{"cluster", "c1"}, {"namespace", "a"}, {"app", "sleep"}}},
        {"host", "h"},
        {"port", 80},
        {"path", "/x"},
        {"keepAlive", true},
        {"tcp", false},
        {"requests", 7},
        {"periodNs", 1},
        {"method", "POST"},
        {"headers", {{"a", "b"}}},
        {"token", {{"issuer", "i"}, {"lifetimeNs", -3}, {"subject", "s"}, {"audiences", {"x"}}, {"notBeforeNs", 0}}}}},
      {"stopTraffic", {{"id", "f#0"}}},
      {"kubeRequest",
       {{"cluster", "c1"},
        {"method", "DELETE"},
        {"path", "/api/v1/x"},
        {"query", ""},
        {"contentType", ""},
        {"body", nullptr}}},
      {"xdsOpen",
       {{"client", 1},
        {"cluster", "c1"},
        {"address", "ipv4:1"},
        {"peer",
         {{"tls", true},
          {"certificate", "PEM"},
          {"clusterId", "c1"},
          {"token",
           {{"issuer", "c1"},
            {"namespace", "a"},
            {"serviceAccount", "s"},
            {"pod", ""},
            {"podUid", ""},
            {"audiences", {"istio-ca"}},
            {"issuedNs", 5},
            {"expiresNs", 6}}}}}}},
      {"xdsOpen",
       {{"client", 2}, {"cluster", "c1"}, {"address", ""}, {"peer", {{"tls", false}, {"token", "unknown"}}}}},
      {"xdsRequest",
       {{"client", 1},
        {"type", "type.googleapis.com/envoy.config.cluster.v3.Cluster"},
        {"version", "v"},
        {"nonce", "n"},
        {"names", {"a"}},
        {"node", {{"id", "i"}, {"locality", {"r", "z", ""}}, {"metadata", {{"A", 1}}}, {"cluster", "x"}}},
        {"error", {{"code", 13}, {"message", "m"}}}}},
      {"xdsDeltaRequest",
       {{"client", 1},
        {"type", "type.googleapis.com/envoy.config.cluster.v3.Cluster"},
        {"subscribe", {"a"}},
        {"unsubscribe", {"b"}},
        {"versions", {{"a", "1"}}}}},
      {"xdsClose", {{"client", 1}}},
      {"certificateRequest",
       {{"client", 3},
        {"cluster", "c1"},
        {"peer", {{"tls", true}}},
        {"csr", "PEM"},
        {"validitySeconds", 60},
        {"impersonatedIdentity", "spiffe://x"}}},
  };
  return *all;
}

TEST(Input, IsPrintedAsItWasReadByteForByte) {
  for (const auto& [kind, body] : Logged()) {
    const absl::StatusOr<Input> input = Input::Parse(kind, body);
    ASSERT_TRUE(input.ok()) << kind << ": " << input.status();
    EXPECT_EQ(input->kind(), kind);
    EXPECT_EQ(input->Print().dump(), body.dump()) << kind;
  }
}

TEST(Input, EveryKindStandsInTheExamples) {
  std::vector<std::string> kinds;
  for (const auto& [kind, body] : Logged()) kinds.push_back(kind);
  for (const std::string_view kind : InputKinds()) EXPECT_THAT(kinds, testing::Contains(std::string(kind)));
}

// Whatever is put in the place of a value: an answer, and never an exception or a trap.
TEST(Input, AFieldOfAnotherTypeIsNamed) {
  const json others[] = {nullptr, true, -1, 1.5, "text", json::array({1}), json::object({{"x", json::array()}})};
  for (const auto& [kind, body] : Logged()) {
    for (const auto& [field, value] : body.items()) {
      for (const json& other : others) {
        json changed = body;
        changed[field] = other;
        const absl::StatusOr<Input> input = Input::Parse(kind, changed);
        if (input.ok()) {
          input->Print();
        } else {
          EXPECT_THAT(std::string(input.status().message()), HasSubstr("input " + kind + ": ")) << changed;
        }
      }
    }
    for (const json& other : others) EXPECT_FALSE(Input::Parse(kind, other).ok()) << kind << other;
  }
}

TEST(Input, WhatIsMissingOrUnknownIsToldWithItsRemedy) {
  const auto error = [](std::string_view kind, const json& body) {
    return std::string(Input::Parse(kind, body).status().message());
  };
  EXPECT_EQ(error("kill", {{"cluster", "c1"}}),
            "input kill: field 'app' is missing; the log was written by hand or damaged");
  EXPECT_THAT(error("kill", {{"cluster", "c1"}, {"app", "a"}, {"softly", true}}), HasSubstr("'softly' is unknown"));
  EXPECT_THAT(error("link", {{"between", {"c1"}}}), HasSubstr("has not two ends"));
  EXPECT_EQ(Input::Parse("explode", {}).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(Input, IsOneOfItsKindsAlone) {
  const Input input = inputs::KillPods{"c1", "sample", "sleep"};
  EXPECT_EQ(input.kind(), "kill");
  EXPECT_EQ(input.cluster(), "c1");
  ASSERT_NE(input.As<inputs::KillPods>(), nullptr);
  EXPECT_EQ(input.As<inputs::KillPods>()->app, "sleep");
  EXPECT_EQ(input.As<inputs::SetLink>(), nullptr);
}

}  // namespace
}  // namespace wavetank::sim
