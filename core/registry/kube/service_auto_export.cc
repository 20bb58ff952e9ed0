#include "core/registry/kube/service_auto_export.h"

#include <utility>

#include "core/kube/definitions.h"
#include "core/registry/kube/multi_cluster_services.h"
#include "core/registry/service_conversion.h"

namespace wavetank::pilot {

ServiceAutoExport::ServiceAutoExport(kube::Client& client, Host& host, const McsOptions& options,
                                     std::string domain_suffix,
                                     std::function<bool(std::string_view hostname)> cluster_local)
    : options_(options),
      domain_suffix_(std::move(domain_suffix)),
      cluster_local_(std::move(cluster_local)),
      client_(client),
      exports_(client, host, ExportKind(options_)),
      services_(client, host, kube::kinds::kService) {}

void ServiceAutoExport::Start() {
  const auto start = [this, alive = std::weak_ptr<char>(alive_)] {
    if (alive.expired()) return;
    exports_.WhenSynced([this] {
      // What an export is made of never changes, so additions alone matter.
      services_.AddHandler({.on_add = [this](const kube::ObjectRef& service) { Export(*service); },
                            .on_update = nullptr,
                            .on_delete = nullptr});
      services_.Start();
    });
    exports_.Start();
  };
  kube::WhenServed(client_, options_.group, {"ServiceExport"}, start);
}

void ServiceAutoExport::Export(const kube::Object& service) {
  const kube::ObjectMeta& meta = service.meta;
  if (cluster_local_(ServiceHostname(meta.name, meta.ns, domain_suffix_))) return;
  if (exports_.Get(meta.ns, meta.name) != nullptr) return;
  absl::StatusOr<kube::ObjectRef> wanted = kube::Object::FromJson(
      {{"apiVersion", options_.group + "/" + options_.version},
       {"kind", "ServiceExport"},
       {"metadata",
        {{"name", meta.name},
         {"namespace", meta.ns},
         {"ownerReferences",
          nlohmann::json::array(
              {{{"apiVersion", "v1"}, {"kind", "Service"}, {"name", meta.name}, {"uid", meta.uid}}})}}}});
  if (!wanted.ok()) return;  // made of an object that could be read
  // What fails is a warning in istiod's log; the next start tries again.
  client_.Apply(*std::move(wanted), [](const absl::StatusOr<kube::ObjectRef>&) {});
}

}  // namespace wavetank::pilot
