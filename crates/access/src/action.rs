//! The action types of MongoDB, which privileges allow, and sets of them. (MongoDB manual,
//! "Privilege Actions".)

use std::fmt;

/// Declares the actions in the order of their names, because a set iterates in that order and
/// `rolesInfo` prints it.
macro_rules! actions {
    ($($variant:ident = $name:literal,)*) => {
        /// An action type. Actions of sharded clusters are included, so that the server can store
        /// and show roles and privileges that name them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Action {
            $(
                #[doc = concat!("The action `", $name, "`.")]
                $variant,
            )*
        }

        impl Action {
            /// Every action, ordered by name.
            pub const ALL: &[Action] = &[$(Action::$variant),*];

            /// Returns the name in privilege documents.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Action::$variant => $name),*
                }
            }
        }
    };
}

actions! {
    AddShard = "addShard",
    AdvanceClusterTime = "advanceClusterTime",
    AllCollectionStats = "allCollectionStats",
    Analyze = "analyze",
    AnalyzeShardKey = "analyzeShardKey",
    AnyAction = "anyAction",
    AppendOplogNote = "appendOplogNote",
    ApplicationMessage = "applicationMessage",
    ApplyOps = "applyOps",
    AuditConfigure = "auditConfigure",
    AuthSchemaUpgrade = "authSchemaUpgrade",
    BypassDefaultMaxTimeMS = "bypassDefaultMaxTimeMS",
    BypassDocumentValidation = "bypassDocumentValidation",
    BypassWriteBlockingMode = "bypassWriteBlockingMode",
    ChangeCustomData = "changeCustomData",
    ChangeOwnCustomData = "changeOwnCustomData",
    ChangeOwnPassword = "changeOwnPassword",
    ChangePassword = "changePassword",
    ChangeStream = "changeStream",
    CheckMetadataConsistency = "checkMetadataConsistency",
    CleanupOrphaned = "cleanupOrphaned",
    CleanupStructuredEncryptionData = "cleanupStructuredEncryptionData",
    ClearJumboFlag = "clearJumboFlag",
    CloseAllDatabases = "closeAllDatabases",
    CollMod = "collMod",
    CollStats = "collStats",
    Compact = "compact",
    CompactStructuredEncryptionData = "compactStructuredEncryptionData",
    ConfigureQueryAnalyzer = "configureQueryAnalyzer",
    ConnPoolStats = "connPoolStats",
    ConnPoolSync = "connPoolSync",
    ConvertToCapped = "convertToCapped",
    CpuProfiler = "cpuProfiler",
    CreateCollection = "createCollection",
    CreateDatabase = "createDatabase",
    CreateIndex = "createIndex",
    CreateJob = "createJob",
    CreateRole = "createRole",
    CreateSearchIndexes = "createSearchIndexes",
    CreateUser = "createUser",
    DbHash = "dbHash",
    DbStats = "dbStats",
    DropCollection = "dropCollection",
    DropConnections = "dropConnections",
    DropDatabase = "dropDatabase",
    DropIndex = "dropIndex",
    DropJob = "dropJob",
    DropRole = "dropRole",
    DropSearchIndex = "dropSearchIndex",
    DropUser = "dropUser",
    EnableProfiler = "enableProfiler",
    EnableSharding = "enableSharding",
    Find = "find",
    FlushRouterConfig = "flushRouterConfig",
    ForceUUID = "forceUUID",
    Fsync = "fsync",
    GetClusterParameter = "getClusterParameter",
    GetCmdLineOpts = "getCmdLineOpts",
    GetDatabaseVersion = "getDatabaseVersion",
    GetDefaultRWConcern = "getDefaultRWConcern",
    GetLog = "getLog",
    GetParameter = "getParameter",
    GetShardMap = "getShardMap",
    GetShardVersion = "getShardVersion",
    GrantRole = "grantRole",
    HostInfo = "hostInfo",
    Impersonate = "impersonate",
    IndexStats = "indexStats",
    Inprog = "inprog",
    Insert = "insert",
    Internal = "internal",
    InvalidateUserCache = "invalidateUserCache",
    IssueDirectShardOperations = "issueDirectShardOperations",
    KillAnyCursor = "killAnyCursor",
    KillAnySession = "killAnySession",
    KillCursors = "killCursors",
    Killop = "killop",
    ListCachedAndActiveUsers = "listCachedAndActiveUsers",
    ListClusterCatalog = "listClusterCatalog",
    ListCollections = "listCollections",
    ListCursors = "listCursors",
    ListDatabases = "listDatabases",
    ListIndexes = "listIndexes",
    ListJobs = "listJobs",
    ListSearchIndexes = "listSearchIndexes",
    ListSessions = "listSessions",
    ListShards = "listShards",
    LogRotate = "logRotate",
    MoveChunk = "moveChunk",
    MoveCollection = "moveCollection",
    Netstat = "netstat",
    OidReset = "oidReset",
    OperationMetrics = "operationMetrics",
    PerformRawDataOperations = "performRawDataOperations",
    PlanCacheIndexFilter = "planCacheIndexFilter",
    PlanCacheRead = "planCacheRead",
    PlanCacheWrite = "planCacheWrite",
    QuerySettings = "querySettings",
    QueryStatsRead = "queryStatsRead",
    QueryStatsReadTransformed = "queryStatsReadTransformed",
    ReIndex = "reIndex",
    RefineCollectionShardKey = "refineCollectionShardKey",
    Remove = "remove",
    RemoveShard = "removeShard",
    RenameCollection = "renameCollection",
    RenameCollectionSameDB = "renameCollectionSameDB",
    ReplSetConfigure = "replSetConfigure",
    ReplSetGetConfig = "replSetGetConfig",
    ReplSetGetStatus = "replSetGetStatus",
    ReplSetHeartbeat = "replSetHeartbeat",
    ReplSetReconfig = "replSetReconfig",
    ReplSetResizeOplog = "replSetResizeOplog",
    ReplSetStateChange = "replSetStateChange",
    ReshardCollection = "reshardCollection",
    Resync = "resync",
    RevokeRole = "revokeRole",
    RotateCertificates = "rotateCertificates",
    RunJob = "runJob",
    ServerStatus = "serverStatus",
    SetAuthenticationRestriction = "setAuthenticationRestriction",
    SetClusterParameter = "setClusterParameter",
    SetDefaultRWConcern = "setDefaultRWConcern",
    SetFeatureCompatibilityVersion = "setFeatureCompatibilityVersion",
    SetParameter = "setParameter",
    SetUserWriteBlockMode = "setUserWriteBlockMode",
    ShardedDataDistribution = "shardedDataDistribution",
    ShardingState = "shardingState",
    Shutdown = "shutdown",
    SplitChunk = "splitChunk",
    SplitVector = "splitVector",
    StorageDetails = "storageDetails",
    Top = "top",
    Touch = "touch",
    TrafficRecord = "trafficRecord",
    TransitionFromDedicatedConfigServer = "transitionFromDedicatedConfigServer",
    TransitionToDedicatedConfigServer = "transitionToDedicatedConfigServer",
    Unlock = "unlock",
    UnshardCollection = "unshardCollection",
    Update = "update",
    UpdateSearchIndex = "updateSearchIndex",
    UseUUID = "useUUID",
    Validate = "validate",
    ViewRole = "viewRole",
    ViewUser = "viewUser",
}

impl Action {
    /// Returns the action with this name.
    pub fn parse(name: &str) -> Option<Action> {
        let at = Action::ALL.binary_search_by(|action| action.name().cmp(name)).ok()?;
        Action::ALL.get(at).copied()
    }
}

/// A set of actions, as a bit map.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ActionSet([u64; WORDS]);

const WORDS: usize = 3;
const _: () = assert!(Action::ALL.len() <= WORDS * 64);

impl ActionSet {
    /// The empty set.
    pub const EMPTY: ActionSet = ActionSet([0; WORDS]);

    /// Returns the set of these actions.
    pub const fn of(actions: &[Action]) -> ActionSet {
        let mut set = ActionSet::EMPTY;
        let mut at = 0;
        while at < actions.len() {
            let bit = actions[at] as usize;
            set.0[bit / 64] |= 1 << (bit % 64);
            at += 1;
        }
        set
    }

    /// Returns the set of every action.
    pub const fn all() -> ActionSet {
        ActionSet::of(Action::ALL)
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn union(self, other: ActionSet) -> ActionSet {
        let [a, b, c] = self.0;
        let [d, e, f] = other.0;
        ActionSet([a | d, b | e, c | f])
    }

    /// Returns the actions of this set that are not in `other`.
    #[must_use]
    pub const fn without(self, other: ActionSet) -> ActionSet {
        let [a, b, c] = self.0;
        let [d, e, f] = other.0;
        ActionSet([a & !d, b & !e, c & !f])
    }

    /// Returns true if the set contains the action or `anyAction`.
    pub const fn allows(self, action: Action) -> bool {
        self.has(action) || self.has(Action::AnyAction)
    }

    /// Returns true if the set contains no action.
    pub const fn is_empty(self) -> bool {
        let [a, b, c] = self.0;
        a | b | c == 0
    }

    /// Returns the actions of the set, ordered by name.
    pub fn iter(self) -> impl Iterator<Item = Action> {
        Action::ALL.iter().copied().filter(move |action| self.has(*action))
    }

    const fn has(self, action: Action) -> bool {
        let bit = action as usize;
        self.0[bit / 64] & (1 << (bit % 64)) != 0
    }
}

impl fmt::Debug for ActionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, ActionSet};

    #[test]
    fn names_are_in_order_and_are_found() {
        assert!(Action::ALL.is_sorted_by(|a, b| a.name() < b.name()));
        for action in Action::ALL {
            assert_eq!(Action::parse(action.name()), Some(*action));
        }
        assert_eq!(Action::parse("fly"), None);
    }

    #[test]
    fn a_set_contains_the_actions_it_was_made_from() {
        let set = ActionSet::of(&[Action::Find, Action::ViewUser]);
        assert!(set.allows(Action::Find) && set.allows(Action::ViewUser));
        assert!(!set.allows(Action::Insert));
        assert_eq!(set.iter().collect::<Vec<_>>(), [Action::Find, Action::ViewUser]);
        assert!(set.without(set).is_empty());
        assert!(ActionSet::of(&[Action::AnyAction]).allows(Action::Shutdown));
    }
}
