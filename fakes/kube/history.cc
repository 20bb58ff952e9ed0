#include "fakes/kube/history.h"

#include <algorithm>
#include <utility>

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

// So many changes after a version was written over, its watchers have mostly heard of it.
constexpr uint64_t kPackAfter = 128;

}  // namespace

void ApiServer::History::Add(const Change& change) {
  const uint64_t number = first_ + entries_.size();
  entries_.push_back({change.resource_version, change.type, {change.object, nullptr}, {change.previous, nullptr}});
  if (change.previous != nullptr) {
    if (const auto by = brought_by_.find(change.previous.get()); by != brought_by_.end()) {
      previous_brought_by_[number] = by->second;
      brought_by_.erase(by);
    }
  }
  if (change.type != kube::WatchEventType::kDeleted) brought_by_[change.object.get()] = number;
  if (number >= kPackAfter) PackPreviousOf(number - kPackAfter);
  while (entries_.size() > most_) {
    Entry& oldest = entries_.front();
    floor_ = oldest.resource_version;
    if (oldest.object.object != nullptr) brought_by_.erase(oldest.object.object.get());
    previous_brought_by_.erase(first_++);
    entries_.pop_front();
  }
}

void ApiServer::History::Forget(int64_t up_to) {
  floor_ = up_to;
  first_ += entries_.size();
  entries_.clear();
  brought_by_.clear();
  previous_brought_by_.clear();
}

ApiServer::History::Entry* ApiServer::History::Find(uint64_t number) {
  return number < first_ || number - first_ >= entries_.size() ? nullptr : &entries_[number - first_];
}

void ApiServer::History::PackPreviousOf(uint64_t number) {
  Entry* const entry = Find(number);
  if (entry == nullptr || entry->previous.object == nullptr) return;
  Entry* bringer = nullptr;
  if (const auto by = previous_brought_by_.find(number); by != previous_brought_by_.end()) {
    bringer = Find(by->second);
    previous_brought_by_.erase(by);
  }
  // Somebody who is slow still holds it: to pack it would take memory, not give any.
  if (entry->previous.object.use_count() > (bringer == nullptr ? 1 : 2)) return;
  auto packed = std::make_shared<std::string>();
  json::to_cbor(entry->previous.object->body, *packed);
  packed->shrink_to_fit();
  entry->previous = {nullptr, std::move(packed)};
  if (bringer != nullptr) bringer->object = entry->previous;
}

ObjectRef ApiServer::History::Unpack(const Version& version) {
  if (version.packed == nullptr) return version.object;
  return kube::Object::FromJson(json::from_cbor(*version.packed)).value();  // it was one
}

void ApiServer::History::ForEach(int64_t after, int64_t up_to, absl::FunctionRef<void(const Change&)> visit) const {
  auto entry = std::partition_point(entries_.begin(), entries_.end(),
                                    [&](const Entry& e) { return e.resource_version <= after; });
  for (; entry != entries_.end() && entry->resource_version <= up_to; ++entry) {
    visit({entry->resource_version, entry->type, Unpack(entry->object), Unpack(entry->previous)});
  }
}

}  // namespace wavetank::fakekube
