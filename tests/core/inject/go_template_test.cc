#include "core/inject/template/go_template.h"

#include <string>

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

using gotemplate::Value;
using nlohmann::json;
using ::testing::HasSubstr;

json Data() {
  return {{"ObjectMeta", {{"name", "echo"}, {"labels", {{"app", "echo"}}}}},
          {"Spec", {{"containers", {{{"name", "a"}, {"ports", {{{"containerPort", 80}}}}}, {{"name", "b"}}}}}},
          {"ProxyConfig", {{"interceptionMode", "REDIRECT"}, {"holdApplicationUntilProxyStarts", true}}},
          {"Values", {{"port", 15020.0}, {"large", 1000000.0}, {"list", {"x", "y"}}, {"empty", ""}}}};
}

std::string Of(std::string_view text) {
  const absl::StatusOr<GoTemplate> parsed = GoTemplate::Parse("inject", text);
  if (!parsed.ok()) return std::string(Message(parsed.status()));
  const absl::StatusOr<std::string> out = parsed->Execute({Data(), Value::Kind::kStruct});
  return out.ok() ? *out : std::string(Message(out.status()));
}

TEST(GoTemplateTest, TrimMarkersTakeTheBlanksOnTheirSide) {
  EXPECT_EQ(Of("a  {{- 1 }}  b"), "a1  b");
  EXPECT_EQ(Of("a  {{ 1 -}}  b"), "a  1b");
  EXPECT_EQ(Of("a {{- /* said to nobody */ -}} b"), "ab");
  EXPECT_EQ(Of("{{3 -}} < {{- 45}}"), "3<45");
}

TEST(GoTemplateTest, WhatIsNotThereIsPrintedByWhatItWouldBe) {
  EXPECT_EQ(Of("{{ .Values.missing }}"), "<no value>");
  EXPECT_EQ(Of("[{{ index .ObjectMeta.Labels `missing` }}]"), "[]");
  EXPECT_EQ(Of("[{{ .Spec.ServiceAccountName }}]"), "[]");
  EXPECT_THAT(Of("{{ .Values.missing.deeper }}"), HasSubstr("nil pointer evaluating interface {}.deeper"));
}

TEST(GoTemplateTest, FieldsOfStructsHaveTheirGoNames) {
  EXPECT_EQ(Of("{{ (index .Spec.Containers 0).Name }}"), "a");
  EXPECT_EQ(Of("{{ range .Spec.Containers }}{{ range .Ports }}{{ .ContainerPort }}{{ end }}{{ end }}"), "80");
  EXPECT_EQ(Of("{{ .ProxyConfig.InterceptionMode.String }} {{ .ProxyConfig.GetTracing.GetZipkin.GetAddress }}"),
            "REDIRECT ");
  EXPECT_EQ(Of("{{ .ProxyConfig.HoldApplicationUntilProxyStarts.GetValue }}"), "true");
}

TEST(GoTemplateTest, VariablesLiveAsLongAsTheirBlock) {
  EXPECT_EQ(Of("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}"), "2");
  EXPECT_EQ(Of("{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ end }}{{ $x }}"), "1");
  EXPECT_EQ(Of("{{ $all := list }}{{ range .Spec.Containers }}{{ $all = append $all .Name }}{{ end }}{{ $all | join "
               "\",\" }}"),
            "a,b");
}

TEST(GoTemplateTest, BranchesAndLoops) {
  EXPECT_EQ(Of("{{ if .Values.empty }}1{{ else if eq .Values.port 15020.0 }}2{{ else }}3{{ end }}"), "2");
  EXPECT_EQ(Of("{{ with .Values.empty }}{{ . }}{{ else }}none{{ end }}"), "none");
  EXPECT_EQ(Of("{{ range $i, $x := .Values.list }}{{ $i }}={{ $x }};{{ end }}"), "0=x;1=y;");
  EXPECT_EQ(Of("{{ range .Values.missing }}x{{ else }}empty{{ end }}"), "empty");
  EXPECT_EQ(Of("{{ range .Values.list }}{{ if eq . \"y\" }}{{ break }}{{ end }}{{ . }}{{ end }}"), "x");
  EXPECT_EQ(Of("{{ define \"t\" }}<{{ . }}>{{ end }}{{ template \"t\" .ObjectMeta.Name }}"), "<echo>");
}

TEST(GoTemplateTest, AndAndOrLookNoFurtherThanNeeded) {
  EXPECT_EQ(Of("{{ or .Values.port .Values.missing.deeper }}"), "15020");
  EXPECT_EQ(Of("[{{ and .Values.empty .Values.missing.deeper }}]"), "[]");
}

TEST(GoTemplateTest, NumbersArePrintedAsGoPrintsThem) {
  EXPECT_EQ(Of("{{ .Values.port }} {{ .Values.large }} {{ 1000000 }} {{ 0.5 }}"), "15020 1e+06 1000000 0.5");
}

TEST(GoTemplateTest, SprigAndTheInjectorsOwnFunctions) {
  EXPECT_EQ(Of("{{ \"a\" | default \"b\" }}{{ \"\" | default \"b\" }}{{ \" x \" | trim | upper | quote }}"), "ab\"X\"");
  EXPECT_EQ(Of("{{ toYaml .Values.list | indent 2 }}"), "- x\n  - \"y\"\n  ");  // not the first line; y is yes
  EXPECT_EQ(Of("{{ printf \"%s-%03d\" \"n\" 7 }} {{ contains \"/\" \"a/b\" }} {{ .Values.list | toJson }}"),
            "n-007 true [\"x\",\"y\"]");
  EXPECT_EQ(Of("{{ excludeInboundPort .Values.port \"22, 23\" }}"), "22,23,15020");
  EXPECT_EQ(Of("{{ annotation .ObjectMeta `a/b` .Values.port }} {{ isset .ObjectMeta.Labels `app` }}"), "15020 true");
}

TEST(GoTemplateTest, MistakesAreToldWithTheirLine) {
  EXPECT_EQ(Of("a\n{{ lasagne }}"), "template: inject:2: function \"lasagne\" not defined");
  EXPECT_THAT(Of("{{ if true }}"), HasSubstr("unexpected EOF"));
  EXPECT_THAT(Of("{{ \"open }}"), HasSubstr("unterminated quoted string"));
  EXPECT_THAT(Of("\n\n{{ index .Values.list 7 }}"),
              HasSubstr("template: inject:3: executing \"inject\": error calling index"));
  EXPECT_THAT(Of("{{ fail \"no\" }}"), HasSubstr("error calling fail: no"));
}

TEST(GoTemplateTest, ANumberThatIsNoneIsNone) {
  EXPECT_EQ(Of("{{ int \"nan\" }} {{ int \"inf\" }} {{ int \"7\" }}"), "0 0 7");
}

TEST(GoTemplateTest, WhatCallsItselfWithoutEndIsStopped) {
  EXPECT_THAT(Of("{{ define \"t\" }}{{ template \"t\" . }}{{ end }}{{ template \"t\" . }}"),
              HasSubstr("exceeded maximum template depth"));
}

TEST(GoTemplateTest, AChainOfBranchesIsAsDeepAsItIsWritten) {
  std::string chain = "{{ if .Values.empty }}1";
  for (int i = 0; i < 100'000; ++i) chain += "{{ else if .Values.empty }}2";
  EXPECT_THAT(Of(chain + "{{ end }}"), HasSubstr("nested too deeply"));
}

TEST(GoTemplateTest, ATextWithoutEndIsStopped) {
  EXPECT_THAT(Of("{{ repeat 1000000000 \"abc\" | trim }}"), HasSubstr("it does not come to an end"));
  EXPECT_EQ(Of("{{ repeat 1000000000 \"\" }}"), "");
}

// Of the templates of 1.30's charts.
TEST(GoTemplateTest, MapsAreMergedAndNothingsLeftOut) {
  EXPECT_EQ(Of("{{ toJsonMap (mergeMaps (strdict `a` `1` `b` `1`) (strdict `b` `2`)) }}"), R"({"a":"1","b":"2"})");
  EXPECT_EQ(Of("{{ toJSON (omitNil (fromJSON `{\"limits\":{\"cpu\":null},\"requests\":{\"cpu\":\"1\",\"memory\":null},"
               "\"kept\":{}}`)) }}"),
            R"({"kept":{},"requests":{"cpu":"1"}})");
}

TEST(GoTemplateTest, OpenTelemetrysAttributesAreThoseOfAMeshThatAsksForThem) {
  const auto attributes = [](const char* enrichment, const char* image) {
    const absl::StatusOr<GoTemplate> parsed = GoTemplate::Parse(
        "inject",
        "{{ otelResourceAttributes .MeshConfig .ObjectMeta.Annotations .ObjectMeta.Labels `shop` .Spec.Containers }}");
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    json data = Data();
    json provider = {{"name", "otel"}, {"opentelemetry", {{"service", "collector"}}}};
    if (*enrichment != 0) provider["opentelemetry"]["serviceAttributeEnrichment"] = enrichment;
    data["MeshConfig"] = {{"extensionProviders", json::array({provider})}};
    data["Spec"]["containers"] = json::array({{{"name", "web"}, {"image", image}}});
    return parsed->Execute({data, Value::Kind::kStruct}).value_or("failed");
  };
  EXPECT_EQ(attributes("", "web:1"), "");
  const char* const asked = "OTEL_SEMANTIC_CONVENTIONS";
  EXPECT_EQ(attributes(asked, "registry:5000/web:1.2"),
            "service.namespace=shop,service.version=1.2,service.instance.id=shop.$(POD_NAME).web");
  EXPECT_EQ(attributes(asked, "web@sha256:abc"),
            "service.namespace=shop,service.version=sha256:abc,service.instance.id=shop.$(POD_NAME).web");
  EXPECT_EQ(attributes(asked, "registry:5000/web"), "service.namespace=shop,service.instance.id=shop.$(POD_NAME).web");
}

}  // namespace
}  // namespace wavetank::pilot
