#include "sim/remote/watched_namespace.h"

#include <memory>

#include "gtest/gtest.h"

namespace wavetank::sim {
namespace {

// Remembers which namespace it was last asked for.
class Asked final : public kube::Client {
 public:
  explicit Asked(std::string* ns) : ns_(ns) {}
  void List(const kube::ResourceKind&, const kube::ListOptions& options,
            absl::AnyInvocable<void(absl::StatusOr<kube::ObjectList>)>) override {
    *ns_ = options.ns;
  }
  std::unique_ptr<kube::Watch> StartWatch(const kube::ResourceKind&, const kube::ListOptions& options, int64_t,
                                          kube::WatchCallbacks) override {
    *ns_ = options.ns;
    return nullptr;
  }
  void Apply(kube::ObjectRef, absl::AnyInvocable<void(absl::StatusOr<kube::ObjectRef>)>) override {}
  void Delete(const kube::ResourceKind&, const kube::NamespacedName&, absl::AnyInvocable<void(absl::Status)>) override {
  }

 private:
  std::string* const ns_;
};

// istiod: pkg/kube/kclient/client_test.go, TestToOpts
TEST(WatchedNamespaceTest, LimitsWhatHasNamespacesAndIsOfAllOfThem) {
  std::string asked;
  WatchedNamespace client(std::make_unique<Asked>(&asked), "sample");
  client.List(kube::kinds::kService, {}, nullptr);
  EXPECT_EQ(asked, "sample");
  client.StartWatch(kube::kinds::kService, {}, 1, {});
  EXPECT_EQ(asked, "sample");
  client.List(kube::kinds::kSecret, {.ns = "istio-system"}, nullptr);
  EXPECT_EQ(asked, "istio-system");
  client.List(kube::kinds::kNode, {}, nullptr);
  EXPECT_EQ(asked, "");
}

}  // namespace
}  // namespace wavetank::sim
