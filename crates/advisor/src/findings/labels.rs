//! The names of what is measured, in the languages of the report. The keys are those of the JSON
//! document.

use super::{Language, Text, Value};

const LABELS: &[(&str, &str, &str)] = &[
    ("bestForm", "cheapest form", "最便宜的形式"),
    ("bytes", "bytes", "字节数"),
    ("bytesOfArray", "bytes of the array", "数组字节数"),
    ("bytesOfId", "bytes of _id and its index", "_id 及其索引的字节数"),
    ("bytesToWrite", "bytes to write for all", "全部改写的字节数"),
    ("childBytes", "bytes of a child", "子文档字节数"),
    ("childReads", "reads of children", "子文档读取"),
    ("childReadsWithParent", "of these with the parent", "其中同时读取父文档"),
    ("childWrites", "writes of children", "子文档写入"),
    ("childrenMax", "children of one parent at most", "单个父文档的子文档最多"),
    ("childrenOfParent", "children of one parent", "平均子文档数"),
    ("collectionScans", "read the whole collection", "全集合扫描比例"),
    ("collections", "collections", "集合数"),
    ("compared", "pairs compared", "比较的对数"),
    ("copyOf", "copy of", "副本来源"),
    ("correlation", "correlation with age", "与文档年龄的相关性"),
    ("counted", "counted for", "统计时长"),
    ("daysToLimit", "until the largest reaches 16 MB", "最大文档达到 16 MB 还需"),
    ("differ", "differ", "不一致比例"),
    ("documentBytes", "bytes of a document", "文档字节数"),
    ("documentMax", "largest document", "最大文档"),
    ("documentMedian", "median document", "文档中位数"),
    ("documents", "documents", "文档数"),
    ("documentsOfOld", "documents of the old form", "旧结构文档数"),
    ("documentsThatDiffer", "documents that differ", "不一致的文档数"),
    ("elements95", "elements, 95 %", "元素数 95 %"),
    ("elementsMax", "elements at most", "元素数最多"),
    ("elementsMedian", "elements, median", "元素数中位数"),
    ("entriesWritten", "entries written", "写入索引项"),
    ("examinedByEachWith", "examined by each with the index", "有索引时每条语句检查的文档数"),
    ("examinedByEachWithHigh", "at most", "至多"),
    ("examinedByEachWithLow", "at least", "至少"),
    ("examinedForEach", "examined for each result", "每个结果检查的文档数"),
    ("example", "example", "示例"),
    ("expired", "expired", "已过期比例"),
    ("fields", "fields", "字段数"),
    ("filteredOfThem", "of these filtered", "其中被过滤"),
    ("filters", "filters on them", "对其过滤"),
    ("growth", "growth in elements", "元素增长"),
    ("growthOfCost", "cost grows with the documents to the power of", "成本随文档数增长的指数"),
    ("growthOfCostWith", "with the index", "有索引时的指数"),
    ("idsMax", "ids of one document at most", "单个文档的 id 最多"),
    ("increments", "increments", "自增操作"),
    ("index", "index", "索引"),
    ("indexBytes", "bytes of the index", "索引字节数"),
    ("indexedOfThem", "of these indexed", "其中有索引"),
    ("indexes", "indexes", "索引数"),
    ("inserts", "inserts", "插入"),
    ("joins", "joins", "连接"),
    ("largestDocument", "largest document", "最大文档"),
    ("links", "links", "连接的集合"),
    ("longerIndex", "longer index", "更长的索引"),
    ("lookups", "look-ups", "查找"),
    ("mainType", "main type", "主要类型"),
    ("meant", "did you mean", "是否想写"),
    ("missingValues", "values that do not exist", "不存在的值"),
    ("names", "field names", "字段名数"),
    ("namesInOne", "names in one object", "单个对象的字段名数"),
    ("newFields", "only in the new form", "仅新结构有"),
    ("oldFields", "only in the old form", "仅旧结构有"),
    ("orphans", "orphans", "悬空引用比例"),
    ("otherType", "other type", "另一种类型"),
    ("parentBytes", "bytes of a parent", "父文档字节数"),
    ("parentReads", "reads of parents", "父文档读取"),
    ("parentReadsWithChildren", "of these with the children", "其中同时读取子文档"),
    ("parentWrites", "writes of parents", "父文档写入"),
    ("presence", "documents that have it", "含该字段的文档"),
    ("presentForm", "present form", "当前形式"),
    ("reads", "reads", "读取"),
    ("readsOfPath", "reads that need the field", "需要该字段的读取"),
    ("readsWithoutPath", "reads that do not need it", "不需要该字段的读取"),
    ("refersTo", "refers to", "引用"),
    ("returned", "documents returned", "返回的文档数"),
    ("sameFields", "have the same fields", "字段相同的比例"),
    ("shareOfBytes", "share of the bytes", "占字节比例"),
    ("shareOfDates", "look like dates", "像日期的比例"),
    ("shareOfOld", "documents of the old form", "旧结构比例"),
    ("shareOfOther", "values of the other type", "另一类型比例"),
    ("shareOfWrites", "share of the writes", "占写入比例"),
    ("skip90", "skipped, 90 %", "跳过 90 %"),
    ("skipMedian", "skipped, median", "跳过中位数"),
    ("sortsInMemory", "sort in memory", "内存排序比例"),
    ("sources", "different sources", "不同来源数"),
    ("sparseFields", "sparse fields of one type", "同类型稀疏字段"),
    ("statements", "statements", "语句"),
    ("totals", "totals that are kept", "保存的汇总数"),
    ("uses", "uses", "使用次数"),
    ("values", "values", "值的个数"),
    ("valuesLookedUp", "values looked up", "查找的值"),
    ("valuesOfOther", "values of the other type", "另一类型的值"),
    ("writes", "writes", "写入"),
];

/// Returns the label of a measured number; the key itself if it has none.
pub fn label(key: &'static str, language: Language) -> &'static str {
    let found = LABELS.iter().find(|(known, ..)| *known == key);
    found.map_or(key, |(_, en, zh)| Text { en, zh }.in_language(language))
}

/// Returns a measured number for people.
pub fn shown(value: &Value, language: Language) -> String {
    let (each_second, each_day, days) = match language {
        Language::English => ("/s", " a day", " days"),
        Language::Chinese => ("/秒", "/天", " 天"),
    };
    match value {
        Value::Count(count) => number(*count),
        Value::Bytes(size) => bytes(*size),
        Value::Share(share) => percent(*share),
        Value::Interval(share, least, most) => {
            format!("{} ({} - {})", percent(*share), percent(*least), percent(*most))
        }
        Value::PerSecond(rate) => format!("{}{each_second}", number(*rate)),
        Value::PerDay(rate) => format!("{}{each_day}", number(*rate)),
        Value::Days(count) => format!("{}{days}", number(*count)),
        Value::Name(name) => name.clone(),
    }
}

/// Returns a number with at most three significant digits after a point, and commas.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value.abs() < 10.0 && value.fract() != 0.0 {
        let text = format!("{value:.2}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a size in the unit that fits.
pub fn bytes(size: f64) -> String {
    let (mut size, mut unit) = (size, "B");
    for larger in ["KB", "MB", "GB", "TB"] {
        if size.abs() < 1_000.0 {
            break;
        }
        size /= 1_024.0;
        unit = larger;
    }
    match size.abs() < 10.0 && unit != "B" {
        true => format!("{size:.1} {unit}"),
        false => format!("{size:.0} {unit}"),
    }
}

/// Returns a share in percent.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        zero if zero <= 0.0 => "0 %".to_owned(),
        part if part < 0.1 => "<0.1 %".to_owned(),
        part if part < 10.0 && part.fract() != 0.0 => format!("{part:.1} %"),
        // Nearly all is not all.
        part if part < 100.0 => format!("{:.0} %", part.min(99.0)),
        _ => "100 %".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!((number(1_234_567.0).as_str(), number(0.5).as_str()), ("1,234,567", "0.5"));
        assert_eq!((number(7.0).as_str(), number(-1_000.4).as_str()), ("7", "-1,000"));
        assert_eq!((bytes(512.0).as_str(), bytes(1_536.0).as_str()), ("512 B", "1.5 KB"));
        assert_eq!(bytes(16_777_216.0), "16 MB");
        assert_eq!((percent(0.999).as_str(), percent(1.0).as_str()), ("99 %", "100 %"));
        assert_eq!((percent(0.012).as_str(), percent(0.0001).as_str()), ("1.2 %", "<0.1 %"));
        assert_eq!(label("uses", Language::Chinese), "使用次数");
    }

    #[test]
    fn labels_are_in_order_and_each_once() {
        assert!(LABELS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
