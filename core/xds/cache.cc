#include "core/xds/cache.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "core/base/buggify/buggify.h"
#include "core/push/sidecar_scope.h"

namespace wavetank::pilot {

void XdsCache::Table::NoteAnything() {
  first_change += changes.size() + 1;
  changes.clear();
}

void XdsCache::Table::Note(std::string_view host) {
  // A generator that has not asked for so long had better look at everything.
  constexpr size_t kMost = 4096;
  if (changes.size() == kMost) NoteAnything();
  changes.emplace_back(host);
}

void XdsCache::Table::Depend(Entry& entry, const std::vector<uint64_t>& configs) {
  std::vector<Dependency>& dependencies = entry.second.dependencies;
  WAVETANK_ASSERT(dependencies.empty(), dependencies.size());  // else lists would point at what was moved
  dependencies.resize(configs.size());                         // whose addresses stay
  for (size_t i = 0; i < configs.size(); ++i) {
    Dependency*& first = by_config[configs[i]];
    dependencies[i] = {configs[i], &entry, nullptr, first};
    if (first != nullptr) first->before = &dependencies[i];
    WAVETANK_ASSERT(first != &dependencies[i]);
    first = &dependencies[i];
  }
}

void XdsCache::Table::Forget(Entry& entry) {
  for (Dependency& one : entry.second.dependencies) {
    if (one.after != nullptr) one.after->before = one.before;
    if (one.before != nullptr) {
      one.before->after = one.after;
    } else if (one.after != nullptr) {
      by_config[one.config] = one.after;
    } else {
      by_config.erase(one.config);
    }
  }
  entry.second.dependencies.clear();
}

std::optional<absl::Span<const std::string>> XdsCache::ChangedSince(Type type, uint64_t mark) const {
  const Table& table = tables_[static_cast<size_t>(type)];
  WAVETANK_ASSERT(mark <= table.first_change + table.changes.size(), mark, table.first_change);  // none of the future
  if (mark < table.first_change) return std::nullopt;
  return absl::MakeConstSpan(table.changes).subspan(mark - table.first_change);
}

const Resource* XdsCache::Get(Type type, std::string_view key) const {
  if (!enabled_) return nullptr;
  const Table& table = tables_[static_cast<size_t>(type)];
  const auto it = table.entries.find(absl::string_view(key.data(), key.size()));
  if (it == table.entries.end()) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  return &it->second.resource;
}

void XdsCache::Add(Type type, std::string key, Time start, const std::vector<uint64_t>& dependencies, Resource resource,
                   std::string_view host) {
  // A proxy that was never pushed to has no start: what it gets may come from any push context.
  if (!Takes(type, start)) return;
  Table& table = tables_[static_cast<size_t>(type)];
  table.token = start;
  if (HasNotes(type)) host.empty() ? table.NoteAnything() : table.Note(host);
  // As an LRU that is full would.
  if (!table.entries.contains(key) && BuggifyFires(BuggifyPoint::kCacheForgets)) return;
  Entry& entry = *table.entries.try_emplace(std::move(key)).first;
  entry.second.resource = std::move(resource);
  const auto& before = entry.second.dependencies;
  const auto same = [](const Dependency& old, uint64_t config) { return old.config == config; };
  if (std::equal(before.begin(), before.end(), dependencies.begin(), dependencies.end(), same)) return;
  table.Forget(entry);
  table.Depend(entry, dependencies);
}

void XdsCache::Clear(Table& table, const std::set<ConfigKey>& configs, Time now) {
  table.token = now;
  for (const ConfigKey& config : configs) {
    const uint64_t hash = ConfigHash(config);
    for (auto of = table.by_config.find(hash); of != table.by_config.end(); of = table.by_config.find(hash)) {
      Entry* const entry = of->second->entry;
      WAVETANK_ASSERT(of->second->before == nullptr, hash);  // the first of its list
      WAVETANK_ASSERT(table.entries.contains(entry->first), entry->first);
      table.Forget(*entry);
      table.entries.erase(table.entries.find(entry->first));
    }
  }
}

void XdsCache::ClearAll(Table& table, Time now) {
  table.token = now;
  table.entries.clear();
  table.by_config.clear();
  table.NoteAnything();
}

void XdsCache::Clear(const std::set<ConfigKey>& configs, Time now) {
  if (!enabled_) return;
  for (int i = 0; i < kTypes; ++i) {
    Table& table = tables_[i];
    const auto first = configs.lower_bound(ConfigKey{ConfigKind::kPeerAuthentication, "", ""});
    const bool all =
        static_cast<Type>(i) == Type::kEds && first != configs.end() && first->kind == ConfigKind::kPeerAuthentication;
    if (all) {
      ClearAll(table, now);
    } else {
      Clear(table, configs, now);
      if (!HasNotes(static_cast<Type>(i))) continue;
      for (const ConfigKey& config : configs) {
        if (config.kind == ConfigKind::kServiceEntry) {
          table.Note(config.name);
        } else {
          table.NoteAnything();
        }
      }
    }
  }
}

void XdsCache::ClearAll(Time now) {
  if (!enabled_) return;
  for (Table& table : tables_) ClearAll(table, now);
}

size_t XdsCache::size() const {
  size_t n = 0;
  for (const Table& table : tables_) n += table.entries.size();
  return n;
}

std::vector<Resource> XdsCache::Snapshot(Type type) const {
  std::vector<Resource> out;
  for (const auto& [key, content] : tables_[static_cast<size_t>(type)].entries) out.push_back(content.resource);
  std::sort(out.begin(), out.end(), [](const Resource& a, const Resource& b) {
    return a.name != b.name ? a.name < b.name : *a.bytes < *b.bytes;
  });
  return out;
}

}  // namespace wavetank::pilot
