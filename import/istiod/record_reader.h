// Lines of istiod's log into records: its text form (time, level, scope, message, labels, with tabs between them) and
// --log_as_json. istiod: istio.io/pkg/log (zap's console and JSON encoders).
//
// Fault model: any bytes. A record that another one interrupts is cut there, and both are kept; a line that belongs to
// no record is counted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "import/evidence/evidence.h"

namespace wavetank::importing {

struct LogRecord {
  WallNs at = 0;
  std::string_view level, scope, message;
  std::string_view labels;  // "cluster=c1 secret=istio-system/s"
  uint64_t line = 0;

  // The value of a label; empty if there is none.
  std::string_view Label(std::string_view key) const;
};

class RecordReader {
 public:
  // The record is valid during the call only.
  using Sink = std::function<void(const LogRecord& record)>;
  // `file`: for messages. Both must outlive the reader.
  RecordReader(std::string file, Refusals& refusals, Sink sink);

  void Line(std::string_view line, uint64_t number, bool cut);
  void Finish();

  uint64_t records() const { return records_; }
  // Whether a line can be the beginning of a record.
  static bool LooksLikeRecord(std::string_view line);

 private:
  void Whole(std::string_view line, uint64_t number);  // a line that is not mixed with another
  bool ReadText(std::string_view line, uint64_t number);
  bool ReadJson(std::string_view line, uint64_t number);
  void Continue(std::string_view line, uint64_t number);
  void Begin(const LogRecord& record, std::string_view line);
  void Flush();
  // The beginning of a record that another one interrupted: the rest of it is most likely the line behind that one.
  void HoldBack(std::string_view head, uint64_t number);
  void GiveUpHeldBack();

  const std::string file_;
  Refusals& refusals_;
  const Sink sink_;
  uint64_t records_ = 0;
  std::string interrupted_;  // empty: none
  uint64_t interrupted_at_ = 0;
  // A message whose end is still to come.
  bool open_ = false, announced_ = false;
  LogRecord held_;
  std::string level_, scope_, message_, labels_;
  std::string json_message_, json_labels_, json_scope_, json_level_;
};

}  // namespace wavetank::importing
