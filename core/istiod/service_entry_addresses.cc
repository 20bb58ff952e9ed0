#include "core/istiod/service_entry_addresses.h"

#include <utility>

#include "core/base/assert.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

bool IsServiceEntry(const kube::Object& object) { return object.kind == "ServiceEntry"; }

// Of each host both addresses. istiod: statusPatchForAddresses.
json StatusOf(const AllocatedAddresses& addresses) {
  json out = json::array();
  for (const AllocatedAddress& one : addresses) {
    WAVETANK_ASSERT(one.number <= 0xffff, one.number, one.host);  // the range has sixteen bits
    out.push_back({{"host", one.host}, {"value", fmt::format("240.240.{}.{}", one.number >> 8, one.number & 0xff)}});
    out.push_back({{"host", one.host}, {"value", fmt::format("2001:2::{:x}", one.number)}});
  }
  return out;
}

}  // namespace

ServiceEntryAddresses::ServiceEntryAddresses(kube::Client& client, Host& host, const config::CrdClient& objects)
    : client_(client), host_(host), objects_(objects) {}

std::map<kube::NamespacedName, AllocatedAddresses> ServiceEntryAddresses::Kept() const {
  std::map<kube::NamespacedName, AllocatedAddresses> out;
  const uint64_t range = IpAddress::V4(240, 240, 0, 0).low();
  for (const kube::ObjectRef& object : objects_.Objects()) {
    if (!IsServiceEntry(*object)) continue;
    for (const json& address : Items(At(object->body, {"status", "addresses"}))) {
      const absl::StatusOr<IpAddress> value = IpAddress::Parse(Text(address, "value"));
      if (!value.ok() || !value->is_v4() || (value->low() & ~uint64_t{0xffff}) != range) continue;
      out[{object->meta.ns, object->meta.name}].push_back(
          {Text(address, "host"), static_cast<uint32_t>(value->low() & 0xffff)});
    }
  }
  return out;
}

void ServiceEntryAddresses::Keep(const kube::NamespacedName& entry, const AllocatedAddresses& addresses) {
  const bool scheduled = !wanted_.empty();
  wanted_[entry] = addresses;
  if (scheduled) return;
  host_.Post([this, alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired()) Write();
  });
}

void ServiceEntryAddresses::Write() {
  const auto wanted = std::exchange(wanted_, {});
  for (const kube::ObjectRef& object : objects_.Objects()) {
    if (!IsServiceEntry(*object) || object->meta.deleting) continue;
    const auto it = wanted.find({object->meta.ns, object->meta.name});
    if (it != wanted.end()) WriteTo(*object, it->second);
  }
}

void ServiceEntryAddresses::WriteTo(const kube::Object& entry, const AllocatedAddresses& addresses) {
  const json wanted = StatusOf(addresses);
  const json& there = At(entry.body, {"status", "addresses"});
  if (there == wanted || (wanted.empty() && Items(there).empty())) return;
  json body = entry.body;
  if (!body["status"].is_object()) body["status"] = json::object();
  body["status"]["addresses"] = wanted;
  absl::StatusOr<kube::ObjectRef> now = kube::Object::FromJson(std::move(body));
  if (!now.ok()) return;  // made of an object that could be read
  // A conflict comes with a newer version, of which the registry hears and then keeps its addresses again.
  client_.Apply(*std::move(now), [](const absl::StatusOr<kube::ObjectRef>&) {});
}

}  // namespace wavetank::pilot
