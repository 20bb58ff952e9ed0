// What kubectl 1.33 sends as protobuf: its bodies as they came, and bodies that nobody should send.
#include "fakes/kube/http/api/protobuf_body.h"

#include "absl/strings/escaping.h"
#include "tests/fakes/kube/http/rest_fixture.h"

namespace wavetank::fakekube::http {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// kubectl create namespace shop
constexpr char kNamespace[] = "azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhwKFAoEc2hvcBIAGgAiACoAMgA4AEIAEgAaAgoAGgAiAA==";
// kubectl -n sample create deployment web --image=example/web:1 --replicas=2 --port=80
constexpr char kDeployment[] =
    "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50EsQBCiUKA3dlYhIAGgZzYW1wbGUiACoAMgA4AEIAWgoKA2FwcBIDd2ViEowBCAISDAoKCgNhcHAS"
    "A3dlYhpyChwKABIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViElISNAoDd2ViEg1leGFtcGxlL3dlYjoxKgAyCgoAEAAYUCIAKgBCAGoAcgCAAQCI"
    "AQCQAQCiAQAaADIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEAIgIKACgAOAAaDAgAEAAYACAAKAA4ABoAIgA=";
// kubectl -n sample create service clusterip web --tcp=80:http
constexpr char kService[] =
    "azhzAAoNCgJ2MRIHU2VydmljZRJyCiUKA3dlYhIAGgZzYW1wbGUiACoAMgA4AEIAWgoKA2FwcBIDd2ViEkUKHgoHODAtaHR0cBIDVENQGFAiCggB"
    "EAAaBGh0dHAoABIKCgNhcHASA3dlYhoAIglDbHVzdGVySVA6AEIAUgBaAGAAaAAaAgoAGgAiAA==";
// kubectl -n sample create poddisruptionbudget p --selector=app=web --min-available=50%
constexpr char kBudget[] =
    "azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSQAoXCgFwEgAaBnNhbXBsZSIAKgAyADgAQgASGQoJCAEQABoDNTAlEgwKCgoD"
    "YXBwEgN3ZWIaCggAGAAgACgAMAAaACIA";
// kubectl auth can-i create pods -n sample
constexpr char kMayI[] =
    "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPgoQCgASABoAIgAqADIAOABCABIgCh4KBnNh"
    "bXBsZRIGY3JlYXRlGgAiACoEcG9kczIAOgAaCAgAEgAaACAAGgAiAA==";
// kubectl auth whoami
constexpr char kWhoAmI[] =
    "azhzAAotChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESEVNlbGZTdWJqZWN0UmV2aWV3EhoKEAoAEgAaACIAKgAyADgAQgASBgoECgASABoAIgA=";
// kubectl -n sample create token default --duration=1h
constexpr char kToken[] =
    "azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIdChAKABIAGgAiACoAMgA4AEIAEgMgkBwaBAoAEgAaACIA";

std::string Bytes(const char* base64) {
  std::string out;
  EXPECT_TRUE(absl::Base64Unescape(base64, &out));
  return out;
}

class ProtobufBodies : public RestTest {
 protected:
  Answer Post(const std::string& target, const std::string& bytes) {
    Request request = Ask("POST", target);
    request.body = bytes;
    request.content_type = "application/vnd.kubernetes.protobuf";
    return Send(request);
  }
  json Parse(const char* base64) {
    Request request = Ask("POST", "/api/v1/namespaces");
    request.body = Bytes(base64);
    const absl::StatusOr<json> body = rest_->ParseBody(request);
    EXPECT_TRUE(body.ok()) << body.status();
    return body.value_or(json());
  }
};

TEST_F(ProtobufBodies, AreTheObjectsThatJsonWouldHold) {
  EXPECT_EQ(Parse(kNamespace), (json{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "shop"}}}}));
  const json labels = {{"app", "web"}}, metadata = {{"name", "web"}, {"namespace", "sample"}, {"labels", labels}};
  const json container = {{"name", "web"},
                          {"image", "example/web:1"},
                          {"ports", json::array({{{"containerPort", 80}}})},
                          {"resources", json::object()}};
  json deployment = Parse(kDeployment);
  // As JSON shows it, but for empty mappings, which say nothing.
  EXPECT_EQ(deployment["metadata"], metadata);
  EXPECT_EQ(deployment["spec"]["replicas"], 2);
  EXPECT_EQ(deployment["spec"]["selector"], (json{{"matchLabels", labels}}));
  EXPECT_EQ(deployment["spec"]["template"]["metadata"], (json{{"labels", labels}}));
  ASSERT_EQ(deployment["spec"]["template"]["spec"].size(), 1u) << deployment;
  json first = deployment["spec"]["template"]["spec"]["containers"][0];
  first["resources"] = json::object();
  EXPECT_EQ(first, container);
  EXPECT_FALSE(deployment.contains("status")) << deployment;
  EXPECT_EQ(
      Parse(kService)["spec"],
      (json{{"ports", json::array({{{"name", "80-http"}, {"port", 80}, {"protocol", "TCP"}, {"targetPort", "http"}}})},
            {"selector", labels},
            {"type", "ClusterIP"}}));
  EXPECT_EQ(Parse(kBudget)["spec"], (json{{"minAvailable", "50%"}, {"selector", {{"matchLabels", labels}}}}));
  EXPECT_EQ(Parse(kToken)["spec"], (json{{"expirationSeconds", 3600}}));
}

TEST_F(ProtobufBodies, AreServedLikeAnyOthers) {
  EXPECT_EQ(Post("/api/v1/namespaces", Bytes(kNamespace)).code, 201);
  EXPECT_EQ(Get("/api/v1/namespaces/shop").body["metadata"]["name"], "shop");
  EXPECT_EQ(Post("/api/v1/namespaces", Bytes(kNamespace)).body["reason"], "AlreadyExists");
  Send("POST", "/api/v1/namespaces", {{"metadata", {{"name", "sample"}}}});
  EXPECT_EQ(Post("/apis/apps/v1/namespaces/sample/deployments?fieldValidation=Strict", Bytes(kDeployment)).code, 201);
  EXPECT_EQ(Post("/api/v1/namespaces/sample/services?fieldValidation=Strict", Bytes(kService)).code, 201);
  EXPECT_EQ(Post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", Bytes(kMayI)).body["status"]["allowed"],
            true);
  const Answer me = Post("/apis/authentication.k8s.io/v1/selfsubjectreviews", Bytes(kWhoAmI));
  EXPECT_EQ(me.code, 201);
  EXPECT_EQ(me.body["status"]["userInfo"]["username"], "kubernetes-admin");
  EXPECT_THAT(me.body["status"]["userInfo"]["groups"], Contains("system:masters"));
  cluster_->api()
      .Apply({{"apiVersion", "v1"},
              {"kind", "ServiceAccount"},
              {"metadata", {{"name", "default"}, {"namespace", "sample"}}}})
      .IgnoreError();
  const Answer token = Post("/api/v1/namespaces/sample/serviceaccounts/default/token", Bytes(kToken));
  EXPECT_EQ(token.code, 201) << token.body;
  EXPECT_EQ(token.body["spec"]["expirationSeconds"], 3600);
}

TEST_F(ProtobufBodies, ThatAreTornOrOfNoKnownKindAreRefused) {
  const std::string whole = Bytes(kDeployment);
  Send("POST", "/api/v1/namespaces", {{"metadata", {{"name", "sample"}}}});
  const std::string path = "/apis/apps/v1/namespaces/sample/deployments?dryRun=All";
  EXPECT_EQ(Post(path, whole).code, 201);
  // Its last four bytes are two fields of the envelope that say nothing.
  for (size_t size = 4; size + 4 < whole.size(); ++size)
    EXPECT_GE(Post(path, whole.substr(0, size)).code, 400) << size << " of " << whole.size() << " bytes";
  // Whatever is flipped, there is an answer, and never text that JSON cannot hold.
  for (size_t at = 4; at < whole.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      EXPECT_GE(Post(path, flipped).code, 200) << at;
    }
  }
  const Answer unknown = Post("/api/v1/namespaces", std::string("k8s\0\x0a\x07\x0a\x02v1\x12\x01X", 13));
  EXPECT_EQ(unknown.code, 400);
  EXPECT_THAT(unknown.body["message"].get<std::string>(), HasSubstr("send it as JSON"));
}

TEST_F(ProtobufBodies, ThatNestTooDeepAreRefused) {
  const auto field = [](int number, const std::string& bytes) {
    std::string out(1, static_cast<char>(number << 3 | 2));
    for (size_t size = bytes.size(); true; size >>= 7) {
      out += static_cast<char>(size >= 0x80 ? size | 0x80 : size);
      if (size < 0x80) return out + bytes;
    }
  };
  // A definition whose schema is `not` of `not` of ...: field 28 has a tag of two bytes.
  std::string schema;
  for (int i = 0; i < 2000; ++i) {
    std::string outer = "\xe2\x01";
    for (size_t size = schema.size(); true; size >>= 7) {
      outer += static_cast<char>(size >= 0x80 ? size | 0x80 : size);
      if (size < 0x80) break;
    }
    schema = outer + schema;
  }
  const std::string meta = field(1, "apiextensions.k8s.io/v1") + field(2, "CustomResourceDefinition");
  const std::string version = field(4, field(1, schema));
  const std::string body = std::string("k8s\0", 4) + field(1, meta) + field(2, field(2, field(7, version)));
  const Answer answer = Post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body);
  EXPECT_EQ(answer.code, 400);
  EXPECT_THAT(answer.body["message"].get<std::string>(), HasSubstr("nested deeper than 64 levels"));
}

}  // namespace
}  // namespace wavetank::fakekube::http
