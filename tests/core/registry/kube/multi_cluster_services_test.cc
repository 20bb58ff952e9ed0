// ServiceExports and ServiceImports at the registry of one cluster.
#include "core/registry/kube/multi_cluster_services.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/registry/kube/kube_controller.h"
#include "core/registry/kube/service_auto_export.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"
#include "tests/core/registry/objects.h"
#include "tests/core/registry/recorded_updater.h"

namespace wavetank::pilot {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsNull;
using ::testing::NotNull;

constexpr char kLocal[] = "web.shop.svc.cluster.local";
constexpr char kSet[] = "web.shop.svc.clusterset.local";
constexpr kube::ResourceKind kExport{"multicluster.x-k8s.io", "v1alpha1", "ServiceExport", "serviceexports"};
constexpr kube::ResourceKind kImport{"multicluster.x-k8s.io", "v1alpha1", "ServiceImport", "serviceimports"};

json ExportOf(const std::string& name) {
  return {{"apiVersion", "multicluster.x-k8s.io/v1alpha1"},
          {"kind", "ServiceExport"},
          {"metadata", {{"name", name}, {"namespace", "shop"}}}};
}
json ImportOf(const std::string& name, const json& ips) {
  return {{"apiVersion", "multicluster.x-k8s.io/v1alpha1"},
          {"kind", "ServiceImport"},
          {"metadata", {{"name", name}, {"namespace", "shop"}}},
          {"spec", {{"type", "ClusterSetIP"}, {"ips", ips}}}};
}

class MultiClusterServicesTest : public ::testing::Test {
 protected:
  void Start(McsOptions mcs = {.discovery = true, .host = true}) {
    mcs_ = mcs;
    client_.Put(ServiceOf("web", {{"app", "web"}}));
    client_.Put(PodOf("web-1", "10.1.0.5", {{"app", "web"}}));
    client_.Put(SliceOf("web", {{"web-1", "10.1.0.5"}}));
    KubeController::Options options;
    options.cluster = ClusterId("c1");
    options.mcs = mcs;
    options.mesh_service = [this](std::string_view hostname) { return controller_->GetService(hostname); };
    controller_ = std::make_unique<KubeController>(client_, host_, updater_, std::move(options), nullptr);
    controller_->on_service = [this](const ServiceRef&, const ServiceRef& now, Event event) {
      controller_->OnMeshService(now, event);
    };
    controller_->Start();
    Run();
  }
  void Run() { kernel_.RunUntil(kernel_.Now() + 50ms); }
  void Put(json object) {
    client_.Put(std::move(object));
    Run();
  }
  void Remove(const kube::ResourceKind& kind) {
    client_.Remove(kind, "shop", "web");
    Run();
  }
  // Of the endpoint under that host; nothing there: nullopt.
  std::optional<bool> Confined(const char* hostname) const {
    const EndpointShards* const shards = updater_.index.Find(hostname, "shop");
    const auto list = shards == nullptr ? nullptr : shards->shards.at({ClusterId("c1"), Provider::kKubernetes});
    if (list == nullptr || list->empty()) return std::nullopt;
    return list->front().p().discoverable_in_same_cluster_only;
  }
  std::vector<std::string> Vips() const {
    const ServiceRef service = controller_->GetService(kSet);
    return service == nullptr ? std::vector<std::string>() : service->cluster_vips.at(ClusterId("c1"));
  }

  sim::Kernel kernel_{1};
  Host& host_ = kernel_.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client_{host_};
  RecordedUpdater updater_;
  McsOptions mcs_;
  std::unique_ptr<KubeController> controller_;
};

TEST_F(MultiClusterServicesTest, WithoutServiceDiscoveryNothingIsConfined) {
  Start({.host = true});
  Put(ImportOf("web", {"10.9.0.1"}));
  EXPECT_EQ(Confined(kLocal), false);
  EXPECT_THAT(controller_->GetService(kSet), IsNull()) << "its host needs service discovery";
}

TEST_F(MultiClusterServicesTest, EndpointsStayInTheirClusterUnlessExported) {
  Start();
  EXPECT_EQ(Confined(kLocal), true);
  Put(ExportOf("web"));
  EXPECT_EQ(Confined(kLocal), false);
  Remove(kExport);
  EXPECT_EQ(Confined(kLocal), true);
}

TEST_F(MultiClusterServicesTest, WithClusterLocalTheHostOfTheClusterStaysThereThoughExported) {
  Start({.discovery = true, .host = true, .cluster_local = true});
  Put(ExportOf("web"));
  Put(ImportOf("web", {"10.9.0.1"}));
  EXPECT_EQ(Confined(kLocal), true);
  EXPECT_EQ(Confined(kSet), false);
}

TEST_F(MultiClusterServicesTest, AnImportWithAddressesMakesAServiceOfTheClustersetWithTheSameEndpoints) {
  Start();
  Put(ImportOf("web", {"10.9.0.2", "10.9.0.1", "nonsense"}));
  ASSERT_THAT(controller_->GetService(kSet), NotNull());
  EXPECT_THAT(Vips(), ElementsAre("10.9.0.1", "10.9.0.2"));
  EXPECT_EQ(controller_->GetService(kSet)->default_address, "10.9.0.1");
  EXPECT_EQ(controller_->GetService(kSet)->ports, controller_->GetService(kLocal)->ports);
  EXPECT_EQ(Confined(kSet), true);
}

TEST_F(MultiClusterServicesTest, AChangedAddressOfAnImportIsTakenOverAndPushed) {
  Start();
  Put(ImportOf("web", {"10.9.0.1"}));
  updater_.Take();
  Put(ImportOf("web", {"10.9.0.7"}));
  EXPECT_THAT(Vips(), ElementsAre("10.9.0.7"));
  EXPECT_EQ(controller_->GetService(kSet)->default_address, "10.9.0.1") << "as istiod leaves it";
  EXPECT_THAT(updater_.Take(), Contains("full service web.shop"));
}

TEST_F(MultiClusterServicesTest, TheImportedServiceGoesWithItsImportOrWithTheLastOfItsName) {
  Start();
  Put(ImportOf("web", {"10.9.0.1"}));
  Remove(kImport);
  EXPECT_THAT(controller_->GetService(kSet), IsNull());
  Put(ImportOf("web", {"10.9.0.1"}));
  EXPECT_THAT(controller_->GetService(kSet), NotNull());
  Remove(kube::kinds::kService);
  EXPECT_THAT(controller_->GetService(kSet), IsNull());
}

TEST_F(MultiClusterServicesTest, AnImportBeforeItsServiceWaitsForIt) {
  Start();
  Remove(kube::kinds::kService);
  Put(ImportOf("web", {"10.9.0.1"}));
  EXPECT_THAT(controller_->GetService(kSet), IsNull());
  Put(ServiceOf("web", {{"app", "web"}}));
  EXPECT_THAT(Vips(), ElementsAre("10.9.0.1"));
}

TEST_F(MultiClusterServicesTest, AutoExportWritesExportsOfWhatIsNotClusterLocal) {
  client_.Put(ServiceOf("web", {}));
  client_.Put(ServiceOf("quiet", {}));
  ServiceAutoExport exports(client_, host_, {.auto_export = true}, "cluster.local",
                            [](std::string_view hostname) { return hostname.starts_with("quiet."); });
  exports.Start();
  Run();
  ASSERT_THAT(client_.Find(kExport, "shop", "web"), NotNull());
  EXPECT_EQ(client_.Find(kExport, "shop", "web")->meta.owner_references.at(0).name, "web");
  EXPECT_THAT(client_.Find(kExport, "shop", "quiet"), IsNull());
}

}  // namespace
}  // namespace wavetank::pilot
