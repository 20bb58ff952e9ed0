#include "core/registry/kube/multi_cluster_services.h"

#include <algorithm>
#include <utility>

#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/kube/definitions.h"
#include "core/profile/changes.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

kube::ResourceKind ImportKind(const McsOptions& options) {
  return {options.group, options.version, "ServiceImport", "serviceimports"};
}

}  // namespace

kube::ResourceKind ExportKind(const McsOptions& options) {
  return {options.group, options.version, "ServiceExport", "serviceexports"};
}

std::string ClusterSetHostname(const kube::NamespacedName& service) {
  return fmt::format("{}.{}.svc{}", service.name, service.ns, kClusterSetDomain);
}

MultiClusterServices::MultiClusterServices(kube::Client& client, Host& host, const McsOptions& options,
                                           const Profile& profile, kube::FilteredInformer::Filter filter)
    : options_(options),
      profile_(profile),
      client_(client),
      exports_(client, host, ExportKind(options_), filter),
      imports_(client, host, ImportKind(options_), std::move(filter)) {}

MultiClusterServices::~MultiClusterServices() { Stop(); }

void MultiClusterServices::Start(std::function<void()> on_synced) {
  on_synced_ = std::move(on_synced);
  const auto read = [this](const char* kind, kube::FilteredInformer& informer, bool& started) {
    const auto start = [this, &informer, &started, alive = std::weak_ptr<char>(alive_)] {
      if (alive.expired() || stopped_) return;
      started = true;
      informer.informer().WhenSynced([this] { on_synced_(); });
      informer.informer().Start();
    };
    kube::WhenServed(client_, options_.group, {kind}, start);
  };
  read("ServiceExport", exports_, exports_started_);
  if (options_.Hosts()) read("ServiceImport", imports_, imports_started_);
}

void MultiClusterServices::Stop() {
  stopped_ = true;
  exports_.informer().Stop();
  imports_.informer().Stop();
}

bool MultiClusterServices::HasSynced() const {
  return (!exports_started_ || exports_.informer().HasSynced()) &&
         (!imports_started_ || imports_.informer().HasSynced());
}

bool MultiClusterServices::Confines(std::string_view hostname, const kube::NamespacedName& service, bool known) const {
  if (!options_.discovery) return false;
  // 1.18.2 has no opinion until it has read exports; later releases know of none then.
  if (!exports_.informer().HasSynced() && !profile_.Has(Change::kMcsConfinesWithoutDefinitions)) return false;
  if (!known || (options_.ClusterLocal() && !hostname.ends_with(kClusterSetDomain))) return true;
  return exports_.Get(service) == nullptr;
}

std::vector<std::string> MultiClusterServices::ImportedIps(const kube::NamespacedName& service) const {
  std::vector<std::string> out;
  const kube::ObjectRef object = imports_.Get(service);
  if (object == nullptr) return out;
  for (const nlohmann::json& ip : Items(At(object->body, {"spec", "ips"}))) {
    if (ip.is_string() && IsIpAddress(ip.get_ref<const std::string&>())) out.push_back(ip.get<std::string>());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace wavetank::pilot
