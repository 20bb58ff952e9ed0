#include "fakes/kube/store/history.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/assert.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

// Of so many versions of one object one is packed whole.
constexpr uint64_t kWholeEvery = 16;

// Equal and of the same types: 1 is not 1.0.
bool Same(const json& a, const json& b) {
  if (a.type() != b.type()) return false;
  if (a.is_array()) return std::equal(a.begin(), a.end(), b.begin(), b.end(), Same);
  if (!a.is_object()) return a == b;
  const auto &x = a.get_ref<const json::object_t&>(), &y = b.get_ref<const json::object_t&>();
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](const auto& one, const auto& other) {
           return one.first == other.first && Same(one.second, other.second);
         });
}

// CBOR (RFC 8949, section 3): the head of a text, and what needs none of the library.
constexpr int kText = 0x60;
constexpr char kArrayOfOne = '\x81', kMap = '\xbf', kEnd = '\xff', kNull = '\xf6';
void PutText(std::string& out, const std::string& text) {
  if (text.size() < 24) {
    out.push_back(static_cast<char>(kText + static_cast<int>(text.size())));
    out += text;
  } else {
    json::to_cbor(text, out);
  }
}

// What makes `older` of `newer`, as a mapping of what differs: to null (older has it not), to [value] or, of two
// mappings, to what makes the one of the other. As a JSON patch, but in one pass over both, and straight into CBOR: a
// version is packed with every write, and its lists are long. False: nothing differs, and nothing was written.
bool PutWayBack(const json::object_t& newer, const json::object_t& older, std::string& out) {
  const size_t start = out.size();
  out.push_back(kMap);
  const auto put_gone = [&](const std::string& key) {
    PutText(out, key);
    out.push_back(kNull);
  };
  const auto put_value = [&](const std::string& key, const json& value) {
    PutText(out, key);
    out.push_back(kArrayOfOne);
    json::to_cbor(value, out);
  };
  auto now = newer.begin();
  for (const auto& [key, was] : older) {
    for (; now != newer.end() && now->first < key; ++now) put_gone(now->first);
    if (now == newer.end() || now->first != key) {
      put_value(key, was);
      continue;
    }
    const json& is = (now++)->second;
    if (is.is_object() && was.is_object()) {
      const size_t before = out.size();
      PutText(out, key);
      if (!PutWayBack(is.get_ref<const json::object_t&>(), was.get_ref<const json::object_t&>(), out))
        out.resize(before);
    } else if (!Same(is, was)) {
      put_value(key, was);
    }
  }
  for (; now != newer.end(); ++now) put_gone(now->first);
  const bool differs = out.size() > start + 1;
  if (!differs) out.resize(start);
  if (differs) out.push_back(kEnd);
  return differs;
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
  // Versions only grow: a watch that resumes at one misses nothing and gets nothing twice.
  WAVETANK_ASSERT(change.object != nullptr, change.resource_version);
  WAVETANK_ASSERT(change.resource_version > floor_, change.resource_version, floor_);
  if (!entries_.empty()) {
    const int64_t last = entries_.back().resource_version;
    WAVETANK_ASSERT(change.resource_version > last, change.resource_version, last);
  }
  const uint64_t number = first_ + entries_.size();
  entries_.push_back({change.resource_version, change.type, {change.object, nullptr}, nullptr});
  Entry& entry = entries_.back();
  uint64_t version = 0;
  if (change.previous != nullptr) {
    const auto brought = brought_.find(change.previous.get());
    if (brought != brought_.end()) version = brought->second.version + 1;
    // At once, as both are at hand now. Whole now and then, so that nobody has to undo more changes than that.
    const bool whole = version % kWholeEvery == 0 && version > 0;
    const json &is = change.object->body, &was = change.previous->body;
    auto packed = std::make_shared<Packed>();
    if (whole) {
      json::to_cbor(was, packed->bytes);
    } else {
      const auto &newer = is.get_ref<const json::object_t&>(), &older = was.get_ref<const json::object_t&>();
      if (!PutWayBack(newer, older, packed->bytes)) json::to_cbor(json::object(), packed->bytes);
    }
    packed->bytes.shrink_to_fit();
    packed->to = whole ? kNothing : number;
    entry.previous = std::move(packed);
    if (brought != brought_.end()) {
      entries_[brought->second.by - first_].object = {nullptr, entry.previous};
      brought_.erase(brought);
    }
  }
  if (change.type != kube::WatchEventType::kDeleted) brought_[change.object.get()] = {number, version};
  while (entries_.size() > most_) {
    const Entry& oldest = entries_.front();
    floor_ = oldest.resource_version;
    if (oldest.object.in_force != nullptr) brought_.erase(oldest.object.in_force.get());
    ++first_;
    entries_.pop_front();
  }
}

void ApiServer::History::Forget(int64_t up_to) {
  WAVETANK_ASSERT(up_to >= floor_, up_to, floor_);
  floor_ = up_to;
  first_ += entries_.size();
  entries_.clear();
  brought_.clear();
}

ObjectRef ApiServer::History::Unpack(const std::shared_ptr<const Packed>& version) const {
  if (version == nullptr) return nullptr;
  std::vector<const Packed*> changes;
  const Packed* at = version.get();
  const kube::Object* in_force = nullptr;
  while (at != nullptr && at->to != kNothing) {
    changes.push_back(at);
    WAVETANK_ASSERT(at->to >= first_, at->to, first_);
    WAVETANK_ASSERT(at->to - first_ < entries_.size(), at->to, entries_.size());
    const Version& next = entries_[at->to - first_].object;
    in_force = next.in_force.get();
    at = next.packed.get();
  }
  json body = at == nullptr ? in_force->body : json::from_cbor(at->bytes);
  for (; !changes.empty(); changes.pop_back()) GoBack(body, json::from_cbor(changes.back()->bytes));
  return kube::Object::FromJson(std::move(body)).value();  // it was one
}

void ApiServer::History::ForEach(int64_t after, int64_t up_to, absl::FunctionRef<void(const Change&)> visit) const {
  auto entry = std::partition_point(entries_.begin(), entries_.end(),
                                    [&](const Entry& e) { return e.resource_version <= after; });
  for (; entry != entries_.end() && entry->resource_version <= up_to; ++entry) {
    const Version& object = entry->object;
    visit({entry->resource_version, entry->type, object.in_force != nullptr ? object.in_force : Unpack(object.packed),
           Unpack(entry->previous)});
  }
}

}  // namespace wavetank::fakekube
