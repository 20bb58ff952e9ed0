#include "core/gen/lds/shared_listeners.h"

#include "core/profile/changes.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

class SharedListenersTest : public ::testing::Test {
 protected:
  SharedListenersTest() { world_.AddService("web"); }

  static Proxy In(const PushContext& push, int ns) {
    Proxy proxy = GenWorld::Connect(push, "c1");
    proxy.config_namespace = proxy.metadata.ns = "ns" + std::to_string(ns);
    SetSidecarScope(proxy, push);
    return proxy;
  }
  // A sidecar of each namespace asks.
  void AskAll(const PushContextRef& push) {
    for (int ns = 0; ns < kNamespaces; ++ns) {
      listeners_.Get(In(*push, ns), push, [&] {
        ++generated_;
        return ResourceList();
      });
    }
  }

  static constexpr int kNamespaces = 30;
  GenWorld world_;
  SharedListeners listeners_;
  int generated_ = 0;
};

TEST_F(SharedListenersTest, SidecarsOfManyNamespacesThatAskInTurnAreAnsweredOnceEach) {
  const PushContextRef push = world_.Push();
  for (int round = 0; round < 3; ++round) AskAll(push);
  EXPECT_EQ(generated_, kNamespaces);
}

TEST_F(SharedListenersTest, OfContextsThatDifferTheOldestIsForgotten) {
  std::weak_ptr<const PushContext> first;
  for (int i = 0; i < 6; ++i) {
    world_.AddService("more" + std::to_string(i));
    const PushContextRef push = world_.Push();
    if (i == 0) first = push;
    AskAll(push);
  }
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(generated_, 6 * kNamespaces);
}

TEST_F(SharedListenersTest, SidecarsWhoseSpansNameTheirServicesDifferentlyShareNothing) {
  config::ExtensionProvider provider;
  provider.name = "otel";
  provider.telemetry = config::ExtensionProvider::Tracer{
      .kind = config::ExtensionProvider::Tracer::Kind::kOpenTelemetry, .semantic_conventions = true};
  world_.mesh.extension_providers = {provider};
  world_.profile.Set(Change::kOtelServiceNames);
  const PushContextRef push = world_.Push();
  for (const char* name : {"one", "two", "one"}) {
    Proxy proxy = GenWorld::Connect(*push, "c1", NodeType::kSidecarProxy, {{"app.kubernetes.io/name", name}});
    listeners_.Get(proxy, push, [&] {
      ++generated_;
      return ResourceList();
    });
  }
  EXPECT_EQ(generated_, 2);
}

}  // namespace
}  // namespace wavetank::pilot
