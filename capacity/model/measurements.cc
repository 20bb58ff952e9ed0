#include "capacity/model/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"

namespace wavetank::capacity {
namespace {

struct Op {
  std::string_view name;
  Change change;
  double events;
};
constexpr Op kOps[] = {
    {"start", Change::kStart, 0},
    {"connect", Change::kConnect, 0},
    {"ep-add", Change::kEndpoints, 1},
    {"ep-del", Change::kEndpoints, 1},
    {"ep-swap", Change::kEndpoints, 1},
    {"ns-net", Change::kEndpoints, 1},
    {"burst50", Change::kEndpoints, 50},
    {"svc-add", Change::kService, 1},
    {"svc-del", Change::kService, 1},
    {"svc-add-ep", Change::kService, 2},
    {"pa-set", Change::kPolicy, 1},
    {"gw-ip", Change::kEverything, 1},
    {"secret-del", Change::kSecretDeleted, 1},
    {"secret-add", Change::kSecretAdded, 1},
};

const Op* FindOp(std::string_view name) {
  for (const Op& op : kOps) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

std::string OpNames() {
  std::string out;
  for (const Op& op : kOps) out += fmt::format("{}{}", out.empty() ? "" : ", ", op.name);
  return out;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Group {
  Measured measured;
  std::vector<double> cpu, rss, half, most;
  double bytes = 0;
};

constexpr std::string_view kNeeded[] = {"tag", "clients", "endpoints", "services", "op"};

// The columns by name; nothing if this is another table.
std::optional<std::map<std::string, size_t, std::less<>>> Columns(const std::string& head) {
  std::map<std::string, size_t, std::less<>> at;
  const std::vector<std::string> names = absl::StrSplit(head, ',');
  for (size_t i = 0; i < names.size(); ++i) at[names[i]] = i;
  for (const std::string_view name : kNeeded) {
    if (!at.contains(name)) return std::nullopt;
  }
  return at;
}

class Reader {
 public:
  absl::Status Read(const std::string& path, bool must) {
    std::ifstream in(path);
    std::string line;
    if (!std::getline(in, line)) {
      return must ? absl::NotFoundError(fmt::format("{}: cannot be read, or is empty", path)) : absl::OkStatus();
    }
    const auto columns = Columns(line);
    if (!columns) {
      if (!must) return absl::OkStatus();
      return absl::InvalidArgumentError(
          fmt::format("{}:1: the first line must name the columns, of which tag, clients, endpoints, services and op "
                      "must be there (docs/cost-model.md)",
                      path));
    }
    for (int number = 2; std::getline(in, line); ++number) {
      if (line.empty()) continue;
      if (absl::Status status = Row(*columns, line); !status.ok()) {
        return absl::InvalidArgumentError(fmt::format("{}:{}: {}", path, number, Message(status)));
      }
    }
    return absl::OkStatus();
  }

  std::vector<Measured> Take() {
    std::vector<Measured> out;
    for (const std::string& key : order_) {
      Group& g = groups_[key];
      const double rows = static_cast<double>(g.measured.repetitions);
      g.measured.cpu_ms = Median(g.cpu);
      g.measured.rss_mb = Median(g.rss) / 1024;
      g.measured.half_ms = Median(g.half);
      g.measured.most_ms = Median(g.most);
      const double proxies = g.measured.situation.mesh.proxies;
      g.measured.kilobytes = proxies > 0 ? g.bytes / rows / 1000 / proxies : 0;
      out.push_back(g.measured);
    }
    return out;
  }

 private:
  absl::Status Row(const std::map<std::string, size_t, std::less<>>& columns, const std::string& line) {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (cells.size() < columns.size()) {
      return absl::InvalidArgumentError(
          fmt::format("{} fields where the first line has {}", cells.size(), columns.size()));
    }
    std::string bad;
    const auto number = [&](std::string_view name) {
      const auto it = columns.find(name);
      if (it == columns.end() || cells[it->second].empty()) return 0.0;
      double value = 0;
      if (!absl::SimpleAtod(cells[it->second], &value) || !std::isfinite(value) || value < 0) bad = name;
      return value;
    };
    const std::string& tag = cells[columns.at("tag")];
    const std::string& name = cells[columns.at("op")];
    const Op* op = FindOp(name);
    if (op == nullptr) {
      return absl::InvalidArgumentError(fmt::format("op '{}' is unknown; there are {}", name, OpNames()));
    }
    const std::string key = tag + "," + name;
    const auto [it, fresh] = groups_.try_emplace(key);
    Group& g = it->second;
    if (fresh) {
      order_.push_back(key);
      Measured& m = g.measured;
      m.setup = tag;
      m.op = name;
      // The benches' meshes hold one Service more, helloworld with its two endpoints.
      m.situation.mesh.proxies = number("clients");
      m.situation.mesh.services = number("services") + 1;
      m.situation.mesh.endpoints = number("endpoints") + 2;
      m.situation.mesh.clusters = tag.rfind("two", 0) == 0 ? 2 : 1;
      if (const double clusters = number("clusters"); clusters > 0) m.situation.mesh.clusters = clusters;
      m.situation.change = op->change;
      m.situation.events = op->events;
      m.situation.after_full = IsFull(op->change) || full_seen_.contains(tag);
    }
    if (IsFull(op->change)) full_seen_.insert({tag, true});
    ++g.measured.repetitions;
    const auto take = [&](std::string_view column, std::vector<double>* to) {
      if (const double value = number(column); value > 0) to->push_back(value);
    };
    take("istiod_cpu_ms", &g.cpu);
    take("rss_kb", &g.rss);
    take("hit_p50", &g.half);
    take("hit_p99", &g.most);
    g.bytes += number("bytes");
    if (!bad.empty()) return absl::InvalidArgumentError(fmt::format("{}: no number that can be", bad));
    return absl::OkStatus();
  }

  std::vector<std::string> order_;
  std::map<std::string, Group> groups_;
  std::map<std::string, bool> full_seen_;
};

}  // namespace

absl::StatusOr<std::vector<Measured>> ReadMeasurements(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  Reader reader;
  if (fs::is_directory(path, error)) {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(path, error)) {
      if (entry.path().extension() == ".csv") files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) {
      if (absl::Status status = reader.Read(file, false); !status.ok()) return status;
    }
  } else if (absl::Status status = reader.Read(path, true); !status.ok()) {
    return status;
  }
  std::vector<Measured> out = reader.Take();
  if (out.empty()) {
    return absl::NotFoundError(fmt::format(
        "{}: no CSV file there has the columns tag, clients, endpoints, services and op (docs/cost-model.md)", path));
  }
  return out;
}

}  // namespace wavetank::capacity
