// What istio-proxy has beside Envoy's own, release by release: istio/proxy, the folders of its source at each tag.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "envoy/extensions/filters/http/wasm/v3/wasm.pb.h"
#include "fakes/envoy/extensions/extensions.h"
#include "google/protobuf/any.pb.h"

namespace wavetank::envoysim {
namespace {

using testing::HasSubstr;

absl::Status Refusal(uint32_t minor, const std::string& type) {
  google::protobuf::Any config;
  config.set_type_url("type.googleapis.com/" + type);
  return Extensions(ExtensionSet::kIstioProxy, EnvoyRelease{minor}).Check("a", config);
}

absl::Status RefusalOfPlugin(uint32_t minor, const std::string& runtime, const std::string& plugin) {
  envoy::extensions::filters::http::wasm::v3::Wasm wasm;
  wasm.mutable_config()->set_name("mx");
  auto* vm = wasm.mutable_config()->mutable_vm_config();
  vm->set_runtime(runtime);
  vm->mutable_code()->mutable_local()->set_inline_string(plugin);
  google::protobuf::Any config;
  config.PackFrom(wasm);
  return Extensions(ExtensionSet::kIstioProxy, EnvoyRelease{minor}).Check("a", config);
}

TEST(IstioProxy, TheFilterPeerMetadataIsUnknownBefore119) {
  const absl::Status status = Refusal(26, "io.istio.http.peer_metadata.Config");
  EXPECT_THAT(std::string(status.message()), HasSubstr("with type URL: 'io.istio.http.peer_metadata.Config'"));
  EXPECT_TRUE(Refusal(27, "io.istio.http.peer_metadata.Config").ok());
}

TEST(IstioProxy, TheNetworkFilterOfAuthenticationIsGoneIn120) {
  EXPECT_TRUE(Refusal(27, "io.istio.network.authn.Config").ok());
  EXPECT_FALSE(Refusal(28, "io.istio.network.authn.Config").ok());
}

TEST(IstioProxy, TheHttpFilterOfAuthenticationIsGoneIn121) {
  EXPECT_TRUE(Refusal(28, "istio.envoy.config.filter.http.authn.v2alpha1.FilterConfig").ok());
  EXPECT_FALSE(Refusal(29, "istio.envoy.config.filter.http.authn.v2alpha1.FilterConfig").ok());
}

TEST(IstioProxy, AFilterWhosePluginIsNotCompiledInAnyMoreCannotBeMade) {
  EXPECT_TRUE(RefusalOfPlugin(27, "envoy.wasm.runtime.null", "envoy.wasm.metadata_exchange").ok());
  const absl::Status status = RefusalOfPlugin(28, "envoy.wasm.runtime.null", "envoy.wasm.metadata_exchange");
  EXPECT_EQ(status.message(), "Unable to create Wasm HTTP filter mx");
}

TEST(IstioProxy, AModuleOfOnesOwnIsTakenByEveryRelease) {
  for (const uint32_t minor : {26U, 32U, 38U}) {
    EXPECT_TRUE(RefusalOfPlugin(minor, "envoy.wasm.runtime.v8", "envoy.wasm.metadata_exchange").ok()) << minor;
  }
}

TEST(IstioProxy, TheNewestEnvoyTakesWhatAnyReleaseHad) {
  EXPECT_TRUE(Refusal(EnvoyRelease().minor, "io.istio.network.authn.Config").ok());
  EXPECT_TRUE(Refusal(EnvoyRelease().minor, "io.istio.http.peer_metadata.Config").ok());
}

}  // namespace
}  // namespace wavetank::envoysim
