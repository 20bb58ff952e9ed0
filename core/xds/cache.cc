#include "core/xds/cache.h"

#include <utility>

namespace wavetank::pilot {

std::string XdsCache::IndexKey(const ConfigKey& key) {
  std::string out;
  out.reserve(key.ns.size() + key.name.size() + 2);
  out.push_back(static_cast<char>(key.kind));
  out.append(key.ns).push_back('/');
  return out.append(key.name);
}

void XdsCache::Table::NoteAnything() {
  first_change += changes.size() + 1;
  changes.clear();
}

void XdsCache::Table::Note(const ConfigKey& config) {
  // Who has not asked for so long had better look at everything.
  constexpr size_t kMost = 4096;
  if (config.kind != ConfigKind::kServiceEntry || changes.size() == kMost) NoteAnything();
  if (config.kind == ConfigKind::kServiceEntry) changes.push_back(config.name);
}

std::optional<absl::Span<const std::string>> XdsCache::ChangedSince(Type type, uint64_t mark) const {
  const Table& table = tables_[static_cast<size_t>(type)];
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

void XdsCache::Add(Type type, std::string key, Time start, std::vector<ConfigKey> dependencies, Resource resource) {
  // A proxy that was never pushed to has no start: what it gets may come from any push context.
  if (!Takes(type, start)) return;
  Table& table = tables_[static_cast<size_t>(type)];
  table.token = start;
  if (HasNotes(type)) {
    bool of_service = false;
    for (const ConfigKey& dependency : dependencies) {
      if (dependency.kind != ConfigKind::kServiceEntry) continue;
      of_service = true;
      table.Note(dependency);
    }
    if (!of_service) table.NoteAnything();
  }
  const auto [it, inserted] = table.entries.try_emplace(std::move(key));
  Entry& entry = it->second;
  if (!inserted) {
    for (const ConfigKey& old : entry.dependencies) {
      if (const auto index = table.by_config.find(IndexKey(old)); index != table.by_config.end()) {
        index->second.erase(it->first);
      }
    }
  }
  for (const ConfigKey& dependency : dependencies) table.by_config[IndexKey(dependency)].insert(it->first);
  entry.resource = std::move(resource);
  entry.dependencies = std::move(dependencies);
}

void XdsCache::Clear(Table& table, const std::set<ConfigKey>& configs, Time now) {
  table.token = now;
  for (const ConfigKey& config : configs) {
    const auto index = table.by_config.find(IndexKey(config));
    if (index == table.by_config.end()) continue;
    const absl::flat_hash_set<std::string> keys = std::move(index->second);
    table.by_config.erase(index);
    for (const std::string& key : keys) {  // order: each is erased, whichever comes first
      const auto entry = table.entries.find(key);
      if (entry == table.entries.end()) continue;
      for (const ConfigKey& other : entry->second.dependencies) {
        const auto it = table.by_config.find(IndexKey(other));
        if (it == table.by_config.end()) continue;
        it->second.erase(key);
        if (it->second.empty()) table.by_config.erase(it);
      }
      table.entries.erase(entry);
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
      for (const ConfigKey& config : configs) table.Note(config);
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

}  // namespace wavetank::pilot
