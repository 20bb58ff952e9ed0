#include "core/gen/eds/eds_load_assignment.h"

#include "core/envoyapi/any.h"
#include "envoy/config/endpoint/v3/endpoint.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

using ::envoy::config::endpoint::v3::ClusterLoadAssignment;

ClusterLoadAssignment ParseAssignment(const std::string& bytes) {
  ClusterLoadAssignment out;
  EXPECT_TRUE(out.ParseFromString(bytes));
  return out;
}

const std::string& Str(const google::protobuf::Struct& s, const char* name) {
  return s.fields().at(name).string_value();
}

std::string_view Own(const EndpointMetadata& metadata, LoadAssignment& in) {
  return *in.owned_metadata.emplace_back(std::make_unique<const std::string>(EncodeEndpointMetadata(metadata)));
}

LoadAssignment OneEndpoint(const std::string& address, uint32_t port, const Labels& labels) {
  LoadAssignment out;
  out.shapes.push_back({Own({"istio", "web-v1", "shop", "cluster1", &labels}, out), &labels});
  LocalityLbEndpoints group;
  group.locality = "r/z/s";
  group.weight = 7;
  group.priority = 2;
  group.endpoints.push_back({&address, port, 7, 0, 1});
  out.localities.push_back(group);
  return out;
}

TEST(EdsLoadAssignment, EncodesEveryField) {
  const std::string address = "10.1.2.3";
  const Labels labels = {{"app", "web"}, {"version", "v1"}};
  const auto cla = ParseAssignment(OneEndpoint(address, 8080, labels).Encode("outbound|80||web"));
  EXPECT_EQ(cla.cluster_name(), "outbound|80||web");
  ASSERT_EQ(cla.endpoints_size(), 1);
  const auto& group = cla.endpoints(0);
  EXPECT_EQ(group.locality().region(), "r");
  EXPECT_EQ(group.locality().zone(), "z");
  EXPECT_EQ(group.locality().sub_zone(), "s");
  EXPECT_EQ(group.load_balancing_weight().value(), 7u);
  EXPECT_EQ(group.priority(), 2u);
  const auto& e = group.lb_endpoints(0);
  EXPECT_EQ(e.endpoint().address().socket_address().address(), address);
  EXPECT_EQ(e.endpoint().address().socket_address().port_value(), 8080u);
  EXPECT_EQ(e.health_status(), ::envoy::config::core::v3::HEALTHY);
  EXPECT_EQ(e.load_balancing_weight().value(), 7u);
  const auto& metadata = e.metadata().filter_metadata();
  EXPECT_EQ(Str(metadata.at("envoy.transport_socket_match"), "tlsMode"), "istio");
  EXPECT_EQ(Str(metadata.at("istio"), "workload"), "web-v1;shop;web;v1;cluster1");
}

TEST(EdsLoadAssignment, BytesAreThoseOfDeterministicSerialisation) {
  const std::string address = "10.1.2.3";
  const Labels labels = {{"service.istio.io/canonical-name", std::string(300, 'n')}};
  const std::string bytes = OneEndpoint(address, 8080, labels).Encode("outbound|80||web");
  EXPECT_EQ(Serialize(ParseAssignment(bytes)), bytes);
}

TEST(EdsLoadAssignment, LocalityWithoutWeightSaysNone) {
  LoadAssignment assignment;
  assignment.localities.emplace_back();
  const auto cla = ParseAssignment(assignment.Encode("c"));
  ASSERT_EQ(cla.endpoints_size(), 1);
  EXPECT_TRUE(cla.endpoints(0).has_locality());
  EXPECT_FALSE(cla.endpoints(0).has_load_balancing_weight());
}

TEST(EdsLoadAssignment, WithoutPortTheAddressIsAPipe) {
  const std::string address = "unix:///var/run/app.sock";
  const auto cla = ParseAssignment(OneEndpoint(address, 0, {}).Encode("c"));
  EXPECT_EQ(cla.endpoints(0).lb_endpoints(0).endpoint().address().pipe().path(), "/var/run/app.sock");
}

TEST(EdsLoadAssignment, DisabledTlsModeAsksForNoTransportSocket) {
  for (std::string_view mode : {std::string_view(), kDisabledTlsMode}) {
    LoadAssignment assignment = OneEndpoint("10.0.0.1", 80, {});
    assignment.shapes[0].metadata = Own({mode, "w", "n", "c", nullptr}, assignment);
    const std::string address = "10.0.0.1";
    assignment.localities[0].endpoints[0].address = &address;
    const auto metadata =
        ParseAssignment(assignment.Encode("c")).endpoints(0).lb_endpoints(0).metadata().filter_metadata();
    EXPECT_EQ(metadata.count("envoy.transport_socket_match"), 0u);
    EXPECT_EQ(Str(metadata.at("istio"), "workload"), "w;n;w;;c");
  }
}

TEST(EdsLoadAssignment, CanonicalServiceHasItsOwnLabelsThenTheRecommendedOnesThenOldOnes) {
  const auto workload = [](const Labels& labels) {
    LoadAssignment assignment;
    const std::string address = "10.0.0.1";
    assignment.shapes.push_back({Own({{}, "w", "n", "c", &labels}, assignment), &labels});
    LocalityLbEndpoints group;
    group.endpoints.push_back({&address, 80, 1, 0, 0});
    assignment.localities.push_back(group);
    return Str(
        ParseAssignment(assignment.Encode("x")).endpoints(0).lb_endpoints(0).metadata().filter_metadata().at("istio"),
        "workload");
  };
  Labels labels = {{"app", "a"}, {"version", "1"}};
  EXPECT_EQ(workload(labels), "w;n;a;1;c");
  labels["app.kubernetes.io/name"] = "b";
  labels["app.kubernetes.io/version"] = "2";
  EXPECT_EQ(workload(labels), "w;n;b;2;c");
  labels["service.istio.io/canonical-name"] = "d";
  labels["service.istio.io/canonical-revision"] = "latest";
  EXPECT_EQ(workload(labels), "w;n;d;;c");
}

}  // namespace
}  // namespace wavetank::pilot
