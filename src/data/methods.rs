//! Structures of methods: MethodDescs, code versions, precode stubs.

use super::{Inline, data};
use crate::base::Addr;

data! {
    /// `MethodDesc` (method.hpp).
    MethodDesc {
        /// The offset in the chunk, in units of `MethodDescAlignment`.
        ChunkIndex: u8,
        Slot: u16,
        Flags: u16,
        Flags3AndTokenRemainder: u16,
        /// .NET 9 and later: the `MethodDescCodeData`.
        CodeData: Addr,
    }

    /// `MethodDescChunk` (method.hpp).
    MethodDescChunk {
        Next: Addr,
        /// Size and number of methods, each minus one; the size is in units of `MethodDescAlignment`.
        Size: u8,
        Count: u8,
        MethodTable: Addr,
        /// The upper bits of the method token, and flags.
        FlagsAndTokenRange: u16,
    }

    /// `InstantiatedMethodDesc` (method.hpp).
    InstantiatedMethodDesc {
        /// The type arguments.
        PerInstInfo: Addr,
        Flags2: u16,
        NumGenericArgs: u16,
    }

    /// `StoredSigMethodDesc` (method.hpp).
    StoredSigMethodDesc {
        Sig: Addr,
        cSig: u32,
    }

    /// `DynamicMethodDesc` (method.hpp): a `DynamicMethod` or an IL stub.
    DynamicMethodDesc {
        MethodName: Addr,
    }

    /// The slot of a method that has no vtable slot (method.hpp). This structure and the next two follow a `MethodDesc`, each only if its flag is
    /// set.
    NonVtableSlot {}

    /// The methods that a `MethodDesc` overrides.
    MethodImpl {}

    /// The slot of the native code.
    NativeCodeSlot {}

    /// `AsyncMethodData` (method.hpp), .NET 11.
    AsyncMethodData {
        Flags: u32,
    }

    /// `MethodDescCodeData` (method.hpp).
    MethodDescCodeData {
        VersioningState: Addr,
        /// .NET 11: the tier of the default version.
        OptimizationTier: u32,
    }

    /// `MethodDescVersioningState` (codeversion.h).
    MethodDescVersioningState {
        MethodDesc: Addr,
        /// The first version other than the default.
        NativeCodeVersionNode: Addr,
    }

    /// `NativeCodeVersionNode` (codeversion.h).
    NativeCodeVersionNode {
        Next: Addr,
        MethodDesc: Addr,
        NativeCode: Addr,
        OptimizationTier: u32,
    }

    /// `NativeCodeVersion` (codeversion.h).
    NativeCodeVersion {
        StorageKind: u32,
        MethodDescOrNode: Addr,
    }

    /// `CallCountingManager` (callcounting.h).
    CallCountingManager {
        /// An `SHash` of `CallCountingInfo`, by method.
        CallCountingHash: Inline,
    }

    /// `CallCountingInfo` (callcounting.h).
    CallCountingInfo {
        CodeVersion: Inline,
        Stage: u8,
    }

    /// `EEConfig` (eeconfig.h).
    EEConfig {
        JitMinOpts: u8,
        TieredPGO: u8,
        TieredPGO_InstrumentOnlyHotCode: u8,
    }

    /// `SHash` (shash.h): a hash table with open addressing.
    SHash {
        Table: Addr,
        TableSize: u32,
    }

    /// `FixupPrecodeData` (precode.h).
    FixupPrecodeData {
        MethodDesc: Addr,
    }

    /// `StubPrecodeData` (precode.h). In .NET 10, the word `MethodDesc` has other contents in stubs of other kinds.
    StubPrecodeData {
        MethodDesc = "MethodDesc|SecretParam": Addr,
    }

    /// `PlatformMetadata` (cdacplatformmetadata.hpp), .NET 10 and later.
    PlatformMetadata {
        PrecodeMachineDescriptor: Inline,
    }

    /// `PrecodeMachineDescriptor` (cdacplatformmetadata.hpp).
    PrecodeMachineDescriptor {
        StubCodePageSize: u32,
    }
}
