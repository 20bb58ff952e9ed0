// What a log store answers to a query: streams of Loki's HTTP API (query_range, "Response format"), and the same as
// logcli prints it one line of JSON each (`-o jsonl`; loki: pkg/logcli/output/jsonl.go). And records of collectors, one
// a line or in one answer: Fluent Bit's and fluentd's (plugins/filter_kubernetes: `log`, `kubernetes.pod_name`),
// Vector's (kubernetes_logs: `message`), Filebeat's (`message`, `kubernetes.pod.name`), the same as Elasticsearch's
// hits (`_source`), and Cloud Logging's entries (`textPayload` or `jsonPayload`, `resource.labels`). What managed
// clouds keep of API servers and pods: CloudWatch's events (`aws logs get-log-events`, `filter-log-events`: `message`,
// which may be a collector's record), Azure's resource logs (`properties.log`, a line each or `records`) and rows of
// its Log Analytics (`log_s`, `LogMessage`), and Cloud Logging's audit entries (`protoPayload` of k8s.io), as audit
// events. And what consoles export as rows or as text (import/text/log_rows.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wavetank::importing {

// One stream's lines as kubectl's --prefix prints them, so that whose they are is told; in the order of their times,
// however the query was sorted.
struct StoredLines {
  std::string pod;  // empty: no label tells. logcli leaves out what all lines have in common
  std::string text;
};

struct StoredLog {
  std::vector<StoredLines> streams;  // empty: it is none, or holds no line
  std::vector<size_t> unread;        // lines that are no records, by number
  std::vector<std::string> notes;    // what the answer itself says that it does not hold
};

enum class LogStoreFile : uint8_t { kNone, kAnswer, kLines, kCollected, kTable, kGrafanaText };

// By a file's beginning.
LogStoreFile KindOfLogStore(std::string_view head);
StoredLog ReadLogStore(LogStoreFile kind, std::string_view text);

}  // namespace wavetank::importing
