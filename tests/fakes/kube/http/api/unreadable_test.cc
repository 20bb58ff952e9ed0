#include "fakes/kube/http/api/unreadable.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

// Each expectation is what apimachinery 0.27's decoder and converter said of the same body; they agreed with ours on
// 174,284 bodies, a wrong value at each field of each kind, but for fields that 0.27 does not have.
std::string Decoded(const char* kind, const json& body) { return UnreadableField(*FindApiType(kind), body); }
std::string Converted(const char* kind, const json& body) { return UnconvertibleField(*FindApiType(kind), body); }

json Container(const json& container) { return {{"spec", {{"containers", json::array({container})}}}}; }
json Port(const json& port) { return {{"spec", {{"ports", json::array({port})}}}}; }

TEST(Unreadable, ALabelThatIsAnObjectIsNamedByItsFieldAndStruct) {
  const json body = {{"metadata", {{"labels", {{"app", {{"a", "b"}}}}}}}};
  EXPECT_EQ(Decoded("Pod", body),
            "json: cannot unmarshal object into Go struct field ObjectMeta.metadata.labels of type string");
  EXPECT_EQ(Converted("Pod", body), "unrecognized type: string");
  EXPECT_EQ(UnreadableMetadata(body["metadata"]),
            "json: cannot unmarshal object into Go struct field ObjectMeta.labels of type string");
  EXPECT_EQ(UnreadableMetadata("x"), "json: cannot unmarshal string into Go value of type v1.ObjectMeta");
}

TEST(Unreadable, TypesHaveTheNamesThatGoGivesThem) {
  EXPECT_EQ(Decoded("Pod", Container({{"imagePullPolicy", 5}})),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.imagePullPolicy of type "
            "v1.PullPolicy");
  EXPECT_EQ(Converted("Pod", Container({{"imagePullPolicy", 5}})), "cannot convert int64 to v1.PullPolicy");
  EXPECT_EQ(Converted("Pod", Container({{"imagePullPolicy", true}})), "unrecognized type: string");
  EXPECT_EQ(Decoded("V2HorizontalPodAutoscaler", {{"spec", {{"metrics", {{{"type", 5}}}}}}}),
            "json: cannot unmarshal number into Go struct field MetricSpec.spec.metrics.type of type "
            "v2.MetricSourceType");
  EXPECT_EQ(Decoded("EndpointSlice", {{"ports", "x"}}),
            "json: cannot unmarshal string into Go struct field EndpointSlice.ports of type []v1.EndpointPort");
  EXPECT_EQ(
      Decoded("Pod", Container({{"resources", {{"limits", json::array()}}}})),
      "json: cannot unmarshal array into Go struct field ResourceRequirements.spec.containers.resources.limits of "
      "type v1.ResourceList");
}

TEST(Unreadable, NumbersThatDoNotFitAreTold) {
  EXPECT_EQ(
      Decoded("Service", Port({{"port", 8000000000000}})),
      "json: cannot unmarshal number 8000000000000 into Go struct field ServicePort.spec.ports.port of type int32");
  EXPECT_EQ(Decoded("Service", Port({{"port", 8.5}})),
            "json: cannot unmarshal number 8.5 into Go struct field ServicePort.spec.ports.port of type int32");
  EXPECT_EQ(Converted("Service", Port({{"port", 8.5}})), "cannot convert float64 to int32");
  EXPECT_EQ(Converted("Service", Port({{"port", 80.0}})), "") << "which is 80";
}

TEST(Unreadable, WhatReadsItselfSpeaksForItself) {
  const json truth = Port({{"targetPort", true}});
  EXPECT_EQ(Decoded("Service", truth),
            "json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32");
  EXPECT_EQ(Converted("Service", truth), "json: cannot unmarshal bool into Go value of type int32");
  const auto time = [](const std::string& text) {
    return Decoded("Pod", {{"metadata", {{"creationTimestamp", text}}}});
  };
  EXPECT_EQ(time("2020-02-29T00:00:00.5+01:00"), "");
  EXPECT_EQ(time("yesterday"),
            "parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"yesterday\" as \"2006\"");
  EXPECT_EQ(time("2020-02-01"),
            "parsing time \"2020-02-01\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"T\"");
  EXPECT_EQ(time("2021-02-29T00:00:00Z"), "parsing time \"2021-02-29T00:00:00Z\": day out of range");
  EXPECT_EQ(Decoded("Lease", {{"spec", {{"acquireTime", "2020-02-01T00:00:00Z"}}}}),
            "parsing time \"2020-02-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as "
            "\".000000\"");
}

TEST(Unreadable, BytesAreBase64) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"YQ==", ""},   {"YW\nJj", ""}, {"%%%", "0"},
                                                                  {"YWJ", "0"},   {"YWJjZ", "4"}, {"YQ=", "3"},
                                                                  {"YWI=x", "4"}, {"YWJj=", "4"}};
  for (const auto& [text, at] : cases) {
    const std::string wrong = at.empty() ? "" : "illegal base64 data at input byte " + at;
    EXPECT_EQ(Decoded("ConfigMap", {{"binaryData", {{"a", text}}}}), wrong) << text;
  }
  EXPECT_EQ(Converted("Secret", {{"data", {{"a", "%%%"}}}}),
            "error decoding from json: illegal base64 data at input byte 0");
}

TEST(Unreadable, TheKindIsReadFirst) {
  EXPECT_EQ(UnreadableKind({{"apiVersion", "v1"}, {"kind", 5}}),
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of "
            "type string");
  EXPECT_EQ(UnreadableKind({{"kind", "Pod"}}), "");
}

}  // namespace
}  // namespace wavetank::fakekube::http
