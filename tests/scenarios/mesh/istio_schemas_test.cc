// What the schemas of Istio's kinds let through, and what not.
#include "core/config/schema/istio_schemas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/base/json_access.h"
#include "core/config/schema/istio_definitions.h"
#include "fakes/kube/http/api/schema.h"
#include "fakes/kube/objects/manifest.h"

namespace wavetank::scenario {
namespace {

using fakekube::http::PruneBySchema;
using fakekube::http::ValidateBySchema;
using nlohmann::json;
using pilot::IstioDefinitions;
using pilot::IstioSchema;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Unknown(std::string_view kind, json spec) {
  json object = {{"apiVersion", "a/v1"}, {"kind", kind}, {"metadata", {{"name", "x"}}}, {"spec", std::move(spec)}};
  return PruneBySchema(IstioSchema(kind), &object);
}
std::vector<std::string> Refused(std::string_view kind, json spec) {
  std::vector<std::string> out;
  for (const auto& error : ValidateBySchema(IstioSchema(kind), {{"spec", std::move(spec)}}))
    out.push_back(error.field + ": " + error.message);
  return out;
}

TEST(IstioSchemas, EveryKindThatIsDefinedHasOne) {
  std::set<std::string> kinds;
  for (const json& definition : IstioDefinitions()) {
    const std::string kind = definition["spec"]["names"]["kind"];
    kinds.insert(kind);
    const json schema = IstioSchema(kind);
    EXPECT_TRUE(schema["properties"]["spec"].contains("properties")) << kind;
    EXPECT_THAT(Unknown(kind, {{"nobodyKnows", 1}}), ElementsAre("spec.nobodyKnows")) << kind;
    // Whatever type a field names, the table has it: only what is meant to be open is.
    const std::function<void(const json&, const std::string&)> walk = [&](const json& at, const std::string& path) {
      if (!at.is_object()) return;
      if (at.contains("x-kubernetes-preserve-unknown-fields")) {
        EXPECT_TRUE(path == ".status" || path.ends_with(".value") || path.ends_with(".pluginConfig")) << kind << path;
      }
      if (const json& properties = At(at, "properties"); properties.is_object()) {
        for (const auto& [name, inner] : properties.items()) walk(inner, path + "." + name);
      }
      walk(At(at, "items"), path);
      walk(At(at, "additionalProperties"), path);
    };
    walk(schema, "");
  }
  EXPECT_EQ(kinds.size(), 14u);
  EXPECT_EQ(IstioSchema("Nobody")["x-kubernetes-preserve-unknown-fields"], true);
}

TEST(IstioSchemas, MisspeltFieldsAndWrongTypesAreFound) {
  const json route = {{"destination", {{"host", "helloworld"}, {"subset", "v1"}}}, {"weight", 90}};
  EXPECT_THAT(Unknown("VirtualService", {{"hosts", {"helloworld"}}, {"http", json::array({{{"route", {route}}}})}}),
              IsEmpty());
  EXPECT_THAT(Unknown("VirtualService", {{"htp", json::array()}}), ElementsAre("spec.htp"));
  EXPECT_THAT(Unknown("DestinationRule", {{"trafficPolicy", {{"outlierDetection", {{"consecutiveErors", 5}}}}}}),
              ElementsAre("spec.trafficPolicy.outlierDetection.consecutiveErors"));
  EXPECT_THAT(Unknown("EnvoyFilter",
                      {{"configPatches", json::array({{{"patch", {{"operation", "MERGE"}, {"value", {{"a", 1}}}}}}})}}),
              IsEmpty());
  EXPECT_THAT(
      Refused("VirtualService", {{"hosts", "helloworld"}}),
      ElementsAre("spec.hosts: Invalid value: \"string\": spec.hosts in body must be of type array: \"string\""));
  EXPECT_THAT(Refused("PeerAuthentication", {{"mtls", {{"mode", "STRIKT"}}}}),
              ElementsAre("spec.mtls.mode: Unsupported value: \"STRIKT\": supported values: \"UNSET\", \"DISABLE\", "
                          "\"PERMISSIVE\", \"STRICT\""));
  EXPECT_THAT(Refused("PeerAuthentication", {{"mtls", {{"mode", "STRICT"}}}}), IsEmpty());
}

TEST(IstioSchemas, OfAlternativesThereIsOne) {
  const auto uri = [](const json& match) {
    return Refused("VirtualService", {{"http", json::array({{{"match", json::array({{{"uri", match}}})}}})}});
  };
  EXPECT_THAT(uri({{"prefix", "/"}}), IsEmpty());
  EXPECT_THAT(uri(json::object()), IsEmpty());
  EXPECT_EQ(uri({{"prefix", "/"}, {"exact", "/"}}).size(), 1u);
  const auto hash = [](const json& by) {
    return Refused("DestinationRule", {{"trafficPolicy", {{"loadBalancer", {{"consistentHash", by}}}}}});
  };
  EXPECT_THAT(hash({{"useSourceIp", true}, {"ringHash", {{"minimumRingSize", 5}}}}), IsEmpty());
  EXPECT_EQ(hash({{"useSourceIp", true}, {"httpHeaderName", "x"}}).size(), 1u);
}

TEST(IstioSchemas, TakeAllThatTheScenariosManifestsHold) {
  int seen = 0;
  const auto manifests = fakekube::LoadManifests(WAVETANK_SOURCE_DIR "/scenarios/manifests");
  ASSERT_TRUE(manifests.ok()) << manifests.status();
  for (const fakekube::Manifest& manifest : *manifests) {
    json object = manifest.object;
    if (object.value("apiVersion", "").find(".istio.io/") == std::string::npos) continue;
    ++seen;
    const json schema = IstioSchema(object.value("kind", ""));
    EXPECT_THAT(PruneBySchema(schema, &object), IsEmpty()) << manifest.file;
    EXPECT_TRUE(ValidateBySchema(schema, object).empty()) << manifest.file;
  }
  EXPECT_GT(seen, 0);
}

TEST(IstioSchemas, FieldsAndWordsOfLaterReleasesAreKnownWhereTheyAreAskedFor) {
  json object = {
      {"spec", {{"servers", json::array({{{"tls", {{"mode", "OPTIONAL_MUTUAL"}, {"credentialNames", {"a"}}}}}})}}}};
  EXPECT_THAT(ValidateBySchema(IstioSchema("Gateway"), object), testing::SizeIs(1));
  EXPECT_THAT(ValidateBySchema(IstioSchema("Gateway", true), object), IsEmpty());
  EXPECT_THAT(PruneBySchema(IstioSchema("Gateway", true), &object), IsEmpty());
  EXPECT_THAT(PruneBySchema(IstioSchema("Gateway"), &object), ElementsAre("spec.servers[0].tls.credentialNames"));
  EXPECT_THAT(Refused("DestinationRule", {{"trafficPolicy", {{"tls", {{"mode", "OPTIONAL_MUTUAL"}}}}}}),
              testing::SizeIs(1))
      << "of clients there is no such mode";
}

}  // namespace
}  // namespace wavetank::scenario
