// status.addresses of ServiceEntries (istiod: pilot/pkg/controllers/ipallocate). Simplified: istiod knows an address
// once it is written; here it knows at once, and the status follows.
#pragma once

#include <memory>

#include "core/base/host.h"
#include "core/kube/client.h"
#include "core/registry/crd_client.h"
#include "core/registry/service_entry/address_keeper.h"

namespace wavetank::pilot {

class ServiceEntryAddresses final : public AddressKeeper {
 public:
  // References must outlive it. `objects` shows the ServiceEntries as they stand.
  ServiceEntryAddresses(kube::Client& client, Host& host, const config::CrdClient& objects);

  std::map<kube::NamespacedName, AllocatedAddresses> Kept() const override;
  void Keep(const kube::NamespacedName& entry, const AllocatedAddresses& addresses) override;

 private:
  // All that were to be kept in one instant.
  void Write();
  void WriteTo(const kube::Object& entry, const AllocatedAddresses& addresses);

  kube::Client& client_;
  Host& host_;
  const config::CrdClient& objects_;
  std::map<kube::NamespacedName, AllocatedAddresses> wanted_;  // by ServiceEntry, until they are written
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::pilot
