// What our istiod generates for the golden cases, profile upstream-envoy, given to a real Envoy over ADS and to the
// simulated one: neither refuses anything, every cluster, listener and route comes into force, and the two say the
// same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "core/profile/changes.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "oracles/envoy/envoydiff.h"
#include "oracles/envoy/peers/process.h"
#include "oracles/golden/case.h"
#include "oracles/golden/case_istiod.h"
#include "oracles/golden/fetch.h"
#include "tests/left_out.h"
#include "tests/long.h"
#include "tests/oracles/envoy/retried.h"
#include "tests/oracles/istiod_records.h"

namespace wavetank::envoydiff {
namespace {

using envoysim::XdsType;

// Where no network namespace is to be had, listeners open no port: two Envoys would meet on it.
std::string WithoutPort(const std::string& bytes) {
  if (NetworkNamespaceAllowed()) return bytes;
  envoy::config::listener::v3::Listener listener;
  if (!listener.ParseFromString(bytes)) return bytes;
  listener.mutable_bind_to_port()->set_value(false);
  return listener.SerializeAsString();
}

World WorldOf(const golden::Fetch& fetch) {
  World world;
  for (const auto& [type, key] : {std::pair{XdsType::kCds, "cds"}, std::pair{XdsType::kEds, "eds"},
                                  std::pair{XdsType::kLds, "lds"}, std::pair{XdsType::kRds, "rds"}}) {
    const auto of_type = fetch.resources().find(key);
    if (of_type == fetch.resources().end()) continue;
    for (const pilot::Resource& resource : of_type->second) {
      const std::string bytes(*resource.bytes);
      world[type][std::string(resource.name)] = type == XdsType::kLds ? WithoutPort(bytes) : bytes;
    }
  }
  return world;
}

// From one state to the next as a full push: everything that is there, and what is no more.
Push PushOf(const World& before, const World& after) {
  Push push;
  push.upserts = after;
  for (const auto& [type, resources] : before) {
    for (const auto& [name, bytes] : resources) {
      const auto at = after.find(type);
      if (at == after.end() || !at->second.contains(name)) push.removals.emplace_back(type, name);
    }
  }
  return push;
}

// Without a name server of the case's own, when a name is resolved is the machine's affair, and the order of messages
// depends on it.
bool ResolvesNames(const World& world) {
  const auto clusters = world.find(XdsType::kCds);
  if (clusters == world.end()) return false;
  return std::any_of(clusters->second.begin(), clusters->second.end(), [](const auto& named) {
    envoy::config::cluster::v3::Cluster cluster;
    return cluster.ParseFromString(named.second) &&
           (cluster.type() == cluster.STRICT_DNS || cluster.type() == cluster.LOGICAL_DNS);
  });
}

// No name is known, and that is said when all that went before on the ADS stream is done.
NameAnswer Late() {
  NameAnswer out;
  out.kind = NameAnswer::Kind::kUnknown;
  out.delay_ms = 100;
  return out;
}

// What 1.18.2 itself generates and no Envoy takes: a proxyInboundListenPort that is no port becomes the path of a pipe,
// and an EnvoyFilter may add a route without a match. Our istiod does as it does; the simulated Envoy refuses as the
// real one does.
bool NoEnvoyTakes(std::string_view name) { return name == "inbound-port-zero/client" || name == "envoy-filters/till"; }

// One case per proxy: connects at the start, and gets a push per step that changes anything for it.
std::vector<Case> CasesOf(const std::string& directory) {
  const auto spec = golden::LoadCase(directory);
  EXPECT_TRUE(spec.ok()) << spec.status();
  if (!spec.ok()) return {};
  golden::IstiodSettings settings;
  settings.profile.Set(pilot::Change::kUpstreamEnvoy);
  golden::CaseIstiod istiod(*spec, settings);
  std::vector<Case> cases;
  std::vector<World> worlds;
  for (size_t step = 0; step <= spec->steps.size(); ++step) {
    const absl::Status stepped = step == 0 ? absl::OkStatus() : istiod.Step(step - 1);
    EXPECT_TRUE(stepped.ok()) << stepped;
    const auto fetched = istiod.FetchAll();
    for (size_t i = 0; i < fetched.size(); ++i) {
      EXPECT_TRUE(fetched[i]->status().ok()) << fetched[i]->status();
      World world = WorldOf(*fetched[i]);
      if (step == 0) {
        Case& c = cases.emplace_back();
        c.file = directory;
        c.name = spec->name + "/" + spec->proxies[i].name;
        c.resources = world;
        c.any_secret = true;
        c.own_network = NetworkNamespaceAllowed();
        if (c.own_network) c.names = Names{{"*", Late()}};
        worlds.push_back(std::move(world));
      } else if (world != worlds[i]) {
        Step& push = cases[i].steps.emplace_back();
        push.kind = Step::Kind::kPush;
        push.push = PushOf(worlds[i], world);
        worlds[i] = std::move(world);
      }
    }
  }
  for (Case& c : cases) {
    // A real Envoy cuts long texts off, and of several bad key sets it names any.
    c.compare_errors = !NoEnvoyTakes(c.name) && !c.name.starts_with("request-authentications/");
    if (!c.own_network) c.compare_ads = c.steps.empty() && !ResolvesNames(c.resources);
  }
  return cases;
}

// The key set that istiod makes up where it finds none holds an RSA key that is none, which Envoys look at since.
bool IsMadeUpKeySet(std::string_view message) {
  return message.find("has invalid local jwks: Jwks RSA [n] or [e] field") != message.npos;
}

absl::StatusOr<std::string> RealEnvoy() { return FindEnvoy("", {WAVETANK_BINARY_DIR, WAVETANK_SOURCE_DIR "/build"}); }

// Every `every`th case of a folder. What could not run on this system is added to `left_out`.
void ExpectAccepted(const std::string& envoy, const std::string& directory, size_t every, std::string* left_out) {
  const auto found = golden::FindCases(directory);
  ASSERT_TRUE(found.ok()) << found.status();
  std::vector<Case> cases;
  for (size_t i = 0; i < found->size(); i += every) {
    std::vector<Case> more = CasesOf((*found)[i]);
    std::move(more.begin(), more.end(), std::back_inserter(cases));
  }
  Options options;
  options.envoy = envoy;
  options.jobs = 4;
  options.retries = 4;  // on a busy machine an Envoy asks again before the answer to its last question is there
  if (const char* filter = std::getenv("WAVETANK_FILTER")) options.filter = filter;
  if (const char* keep = std::getenv("WAVETANK_KEEP")) options.keep = keep;
  size_t accepted = 0;
  Retried retried;
  const auto results = RunCases(cases, options, [&](const CaseResult& result) {
    if (std::getenv("WAVETANK_VERBOSE") != nullptr) {
      for (const std::string& m : result.simulated.ads) std::printf("  simulated %s\n", m.c_str());
      for (const std::string& m : result.real.ads) std::printf("  real      %s\n", m.c_str());
    }
    for (const std::string& d : result.differences) ADD_FAILURE() << result.name << ": " << d;
    retried.Add(result);
    if (!result.left_out.empty()) {
      *left_out = result.left_out;
      return;
    }
    for (const std::string& message : result.real.ads) {
      if (message.find(" error ") == std::string::npos || NoEnvoyTakes(result.name) || IsMadeUpKeySet(message))
        continue;
      ADD_FAILURE() << result.name << ": refused: " << message;
      return;
    }
    ++accepted;
  });
  ASSERT_TRUE(results.ok()) << results.status();
  retried.Report(results->size());
  EXPECT_TRUE(accepted >= 3u || !left_out->empty()) << accepted << " accepted";
  std::printf("%zu proxies accepted of %zu\n", accepted, results->size());
}

TEST(GoldenXdsTest, ARealEnvoyTakesWhatOurOwnCasesGive) {
  const auto envoy = RealEnvoy();
  NEEDS_TOOL(envoy.ok(), "a real Envoy", envoy.status().message());
  std::string left_out;
  ExpectAccepted(*envoy, WAVETANK_SOURCE_DIR "/tests/oracles/golden/cases", LongTests() ? 1 : 6, &left_out);
  NEEDS_TOOL(left_out.empty(), "a network namespace for a real Envoy", left_out);
}

TEST(GoldenXdsTest, ARealEnvoyTakesWhatTheRecordedCasesGive) {
  const auto envoy = RealEnvoy();
  NEEDS_TOOL(envoy.ok(), "a real Envoy", envoy.status().message());
  std::string left_out;
  ExpectAccepted(*envoy, IstiodRecords() + "/cases", LongTests() ? 1 : 12, &left_out);
  NEEDS_TOOL(left_out.empty(), "a network namespace for a real Envoy", left_out);
}

}  // namespace
}  // namespace wavetank::envoydiff
