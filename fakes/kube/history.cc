#include "fakes/kube/history.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

// So many changes after a version was written over, its watchers have mostly heard of it.
constexpr uint64_t kPackAfter = 128;
// Of so many versions of one object one is packed whole.
constexpr uint64_t kWholeEvery = 16;

// What makes `older` of `newer`, as a mapping of what differs: to null (older has it not), to [value] or, of two
// mappings, to what makes the one of the other. Null: nothing. As a JSON patch, but in one pass over both.
json WayBack(const json::object_t& newer, const json::object_t& older) {
  json::object_t out;
  const auto put = [&](const std::string& key, json value) { out.emplace_hint(out.end(), key, std::move(value)); };
  auto now = newer.begin();
  for (const auto& [key, was] : older) {
    for (; now != newer.end() && now->first < key; ++now) put(now->first, nullptr);
    if (now == newer.end() || now->first != key) {
      put(key, json::array({was}));
      continue;
    }
    const json& is = (now++)->second;
    if (is.is_object() && was.is_object()) {
      json change = WayBack(is.get_ref<const json::object_t&>(), was.get_ref<const json::object_t&>());
      if (!change.is_null()) put(key, std::move(change));
    } else if (is != was) {
      put(key, json::array({was}));
    }
  }
  for (; now != newer.end(); ++now) put(now->first, nullptr);
  return out.empty() ? json() : json(std::move(out));
}

void GoBack(json& body, json change) {
  for (auto& [key, value] : change.items()) {
    if (value.is_null()) {
      body.erase(key);
    } else if (value.is_array()) {
      body[key] = std::move(value[0]);
    } else {
      GoBack(body[key], std::move(value));
    }
  }
}

}  // namespace

void ApiServer::History::Add(const Change& change) {
  const uint64_t number = first_ + entries_.size();
  entries_.push_back({change.resource_version, change.type, {change.object, nullptr}, {change.previous, nullptr}});
  uint64_t version = 0;
  if (change.previous != nullptr) {
    if (const auto it = brought_.find(change.previous.get()); it != brought_.end()) {
      version = it->second.version + 1;
      previous_brought_[number] = it->second;
      brought_.erase(it);
    }
  }
  if (change.type != kube::WatchEventType::kDeleted) brought_[change.object.get()] = {number, version};
  if (number >= kPackAfter) PackPreviousOf(number - kPackAfter);
  while (entries_.size() > most_) {
    Entry& oldest = entries_.front();
    floor_ = oldest.resource_version;
    if (oldest.object.object != nullptr) brought_.erase(oldest.object.object.get());
    previous_brought_.erase(first_++);
    entries_.pop_front();
  }
}

void ApiServer::History::Forget(int64_t up_to) {
  floor_ = up_to;
  first_ += entries_.size();
  entries_.clear();
  brought_.clear();
  previous_brought_.clear();
}

const ApiServer::History::Entry* ApiServer::History::Find(uint64_t number) const {
  return number < first_ || number - first_ >= entries_.size() ? nullptr : &entries_[number - first_];
}

void ApiServer::History::PackPreviousOf(uint64_t number) {
  Entry* const entry = Find(number);
  if (entry == nullptr || entry->previous.object == nullptr) return;
  Entry* bringer = nullptr;
  uint64_t version = 0;
  if (const auto it = previous_brought_.find(number); it != previous_brought_.end()) {
    bringer = Find(it->second.by);
    version = it->second.version;
    previous_brought_.erase(it);
  }
  // Somebody who is slow still holds it: to pack it would take memory, not give any.
  if (entry->previous.object.use_count() > (bringer == nullptr ? 1 : 2)) return;
  const json& body = entry->previous.object->body;
  // Whole now and then, so that nobody has to undo more changes than that. Whoever wrote over it is not packed yet:
  // they go in order.
  const bool whole = version % kWholeEvery == kWholeEvery - 1;
  auto packed = std::make_shared<std::string>();
  json::to_cbor(whole ? body
                      : WayBack(entry->object.object->body.get_ref<const json::object_t&>(),
                                body.get_ref<const json::object_t&>()),
                *packed);
  packed->shrink_to_fit();
  entry->previous = {nullptr, std::move(packed), whole ? kWhole : number};
  if (bringer != nullptr) bringer->object = entry->previous;
}

ObjectRef ApiServer::History::Unpack(const Version& version) const {
  if (version.packed == nullptr) return version.object;
  std::vector<const std::string*> changes;
  const Version* at = &version;
  for (; at->packed != nullptr && at->after != kWhole; at = &Find(at->after)->object)
    changes.push_back(at->packed.get());
  json body = at->packed != nullptr ? json::from_cbor(*at->packed) : at->object->body;
  for (; !changes.empty(); changes.pop_back()) GoBack(body, json::from_cbor(*changes.back()));
  return kube::Object::FromJson(std::move(body)).value();  // it was one
}

void ApiServer::History::ForEach(int64_t after, int64_t up_to, absl::FunctionRef<void(const Change&)> visit) const {
  auto entry = std::partition_point(entries_.begin(), entries_.end(),
                                    [&](const Entry& e) { return e.resource_version <= after; });
  for (; entry != entries_.end() && entry->resource_version <= up_to; ++entry) {
    visit({entry->resource_version, entry->type, Unpack(entry->object), Unpack(entry->previous)});
  }
}

}  // namespace wavetank::fakekube
